//! The normal form.

use proptest::prelude::*;

use super::super::{parse, preview, unplannable};
use super::good;
use crate::model::hakopod::{Application, UpdateStrategy};

const WHOLE: &str = r#"
name = "shop"
inject_env = true
env = { B = "2", A = "1" }
[secrets]
DB = { ref = "db" }
[networks.back]
internal = true
[volumes.u]
size_gib = 1
[services.web]
image = "nginx:1"
port = 80
public = true
networks = ["default", "back"]
depends_on = ["mig", "api"]
ports = [{ name = "z", port = 9, protocol = "udp" }, { name = "a", port = 8 }]
public_tcp = [{ port = 3001, target_port = 8, source_cidrs = ["192.0.2.9/24", "10.1.2.3/8"] }]
[services.web.autoscaling]
max_replicas = 3
[services.web.resources]
cpu_limit = "1"
memory_limit = "512M"
[services.api]
image = "api:1"
port = 8080
node_name = "n1"
mounts = [{ volume = "u", mount_path = "/d" }]
[services.api.resources]
[services.other]
image = "api:1"
mounts = [{ volume = "u", mount_path = "/d" }]
[services.mig]
image = "api:1"
[services.mig.job]
"#;

#[test]
fn defaults_are_written_out_and_sets_are_in_order() {
    let application = good(WHOLE);
    let web = &application.services["web"];
    assert_eq!(web.networks, ["back", "default"]);
    assert_eq!(web.depends_on, ["api", "mig"]);
    assert_eq!(web.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["a", "z"]);
    assert_eq!(web.ports[1].protocol.as_str(), "UDP");
    assert_eq!(web.public_tcp[0].source_cidrs, ["10.0.0.0/8", "192.0.2.0/24"]);
    assert_eq!((web.replicas, web.run_as_user, web.fs_group, web.termination_grace_seconds), (1, 10001, 10001, 30));
    assert_eq!(web.update_strategy, Some(UpdateStrategy::Rolling));
    assert_eq!(application.services["mig"].update_strategy, None);
    assert_eq!(application.services["api"].resources, None);
    assert!(application.networks.contains_key("default"));
}

#[test]
fn services_that_share_a_volume_agree_on_a_node() {
    let application = good(WHOLE);
    assert_eq!(application.services["other"].node_name.as_deref(), Some("n1"));
    assert_eq!(application.placement_groups(), [["api", "other"]]);
}

#[test]
fn what_services_run_with_follows_from_both_levels() {
    let application = good(WHOLE);
    let web = &application.services["web"];
    assert_eq!(application.effective_env(web).keys().collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(application.effective_secrets(web).keys().collect::<Vec<_>>(), ["DB"]);
    assert_eq!(application.deployment_order(), ["api", "mig", "other", "web"]);
    assert!(application.has_external_egress(web));
    assert!(application.is_peer("web", "api"));
}

#[test]
fn the_normal_form_round_trips_through_toml_and_json() {
    let application = good(WHOLE);
    let text = application.to_toml().unwrap();
    let again = good(&text);
    assert_eq!(application, again);
    assert_eq!(text, again.to_toml().unwrap());
    assert_eq!(application.hash().unwrap(), again.hash().unwrap());
    let json: Application = serde_json::from_str(&application.to_json().unwrap()).unwrap();
    assert_eq!(application, json);
}

#[test]
fn quantities_are_compared_as_numbers() {
    let resources = good(WHOLE).services["web"].resources.unwrap();
    assert_eq!(resources.cpu_limit.unwrap().to_string(), "1000m");
    assert_eq!(resources.memory_limit.unwrap().bytes(), 512_000_000);
    assert_eq!(resources.memory_limit.unwrap().to_string().parse(), Ok(resources.memory_limit.unwrap()));
}

#[test]
fn no_services_at_all_is_a_specification() {
    let application = good("name = \"shop\"\n[services]\n");
    assert!(application.services.is_empty());
    assert_eq!(good(&application.to_toml().unwrap()), application);
}

#[test]
fn a_preview_is_small_and_private() {
    let text = "name = \"shop\"\n[services.web]\nimage = \"a\"\n";
    assert_eq!(preview(&good(text), "f"), Ok(()));
    let large = format!("{text}size = \"large\"\nreplicas = 2\n[domains]\n[volumes.u]\nsize_gib = 6\n");
    let problems = preview(&good(&large), "f").unwrap_err();
    let keys: Vec<&str> = problems.list.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    let provider = format!("{text}secrets = {{ A = {{ provider = \"p\", key = \"k\" }} }}\n");
    assert!(preview(&good(&provider), "f").is_err());
    let scheduled = format!("{text}[services.web.job.schedule]\ncron = \"0 0 * * *\"\n");
    assert!(preview(&good(&scheduled), "f").is_err());
}

#[test]
fn client_profiles_parse_and_cannot_be_planned() {
    let application =
        good("name = \"s\"\n[services.a]\nimage = \"a\"\n[services.a.database_client_profiles]\nU = \"p\"\n");
    assert_eq!(unplannable(&application), ["services.a.database_client_profiles"]);
}

/// Lines of the top level of a service, each good alone and together.
const LINES: [&str; 12] = [
    "port = 80",
    "public = true",
    "size = \"medium\"",
    "replicas = 2",
    "command = [\"a\"]",
    "args = [\"b\", \"c\"]",
    "env = { A = \"1\", B = \"2\" }",
    "networks = [\"default\"]",
    "healthcheck = \"/x\"",
    "run_as_user = 7",
    "temporary_mounts = [{ mount_path = \"/t\", size_mib = 3 }]",
    "resources = { cpu_limit = \"0.75\" }",
];

proptest! {
    #[test]
    fn the_order_of_keys_means_nothing(order in Just(LINES.to_vec()).prop_shuffle()) {
        let text = |lines: &[&str]| format!("name = \"shop\"\n[services.web]\nimage = \"a\"\n{}\n", lines.join("\n"));
        let (shuffled, straight) = (good(&text(&order)), good(&text(&LINES)));
        prop_assert_eq!(shuffled.hash().unwrap(), straight.hash().unwrap());
        prop_assert_eq!(good(&shuffled.to_toml().unwrap()), shuffled);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        prop_assert!(parse(text.as_bytes(), "f").is_err());
    }

    #[test]
    fn no_damage_to_a_good_file_panics(at in 0..WHOLE.len(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = WHOLE.as_bytes().to_vec();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Ok(application) = parse(&bytes, "f") {
            prop_assert_eq!(good(&application.to_toml().unwrap()), application);
        }
    }
}
