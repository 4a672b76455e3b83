//! Every accepted file renders, and only what it says matters, not the order in which it says it.

use proptest::prelude::*;

use super::*;
use crate::tests::corpus;

/// Lines that a service may have, alone or together.
const PIECES: &[&str] = &[
    "port = 8080",
    "public = true",
    "replicas = 3",
    "size = 'large'",
    "suspended = true",
    "healthcheck = '/ready'",
    "startup_timeout_seconds = 60",
    "update_strategy = 'recreate'",
    "env = { A = '1', B = '$(A) $$' }",
    "secrets = { KEY = { ref = 'key' } }",
    "command = ['/bin/run']",
    "args = ['--x', '$$y']",
    "networks = ['inner']",
    "network_access = { from = [] }",
    "architecture = 'amd64'",
    "node_name = 'node-7'",
    "gpu = { count = 1 }",
    "run_as_user = 70",
    "read_only_root_filesystem = true",
    "working_dir = '/srv'",
    "termination_grace_seconds = 3600",
    "registry_credential = 'ghcr'",
    "volume = { mount_path = '/data', size_gib = 2 }",
    "mounts = [{ volume = 'all', mount_path = '/all', sub_path = 'x' }]",
    "temporary_mounts = [{ mount_path = '/scratch', size_mib = 300 }]",
    "autoscaling = { max_replicas = 20 }",
    "restart_nonce = 'again'",
    "ports = [{ name = 'udp', port = 8080, protocol = 'UDP' }, { name = 'more', port = 81, target_port = 8080 }]",
    "readiness = { protocol = 'smtp', port = 8080 }",
    "backend_http2 = true",
    "ingress_timeout_seconds = 3600",
    "tls = { certificate = 'own' }",
    "private_egress = ['orders']",
    "files = { conf = { mount_path = '/etc/x.conf', content = \"a\\n\\nb\" }, key = { mount_path = '/srv/key', secret = { ref = 'k' } } }",
    "bindings = { URL = { service = 'other', protocol = 'http' } }",
    "job = { retries = 1 }",
    "job = { schedule = { cron = '0 0 * * *' } }",
    "certificate_mounts = [{ certificate = 'mail', hostname = 'mail.example.org', mount_path = '/certs' }]",
    "sidecars = [{ name = 'log', image = 'log:1', env = { X = '1' } }]",
    "kubernetes = { deployment = 'spec: {minReadySeconds: 4}' }",
    "depends_on = ['other']",
];

fn file(pieces: &[&str]) -> String {
    let head = "name = 'app'\ninject_env = true\nenv = { SHARED = 'x' }\nvolumes = { all = { size_gib = 1 } }\n";
    let networks = "networks = { inner = { internal = true, virtual_network = 'mesh', segment = 'all' } }\n";
    let other = "[services.other]\nimage = 'other:1'\nport = 90\nnetworks = ['default', 'inner']\n";
    let mounted = "mounts = [{ volume = 'all', mount_path = '/all' }]\nfs_group = 70\n";
    format!("{head}{networks}{other}{mounted}[services.it]\nimage = 'it:1'\nfs_group = 70\n{}\n", pieces.join("\n"))
}

/// A value on one line, the keys of its tables in the order that `seed` gives.
fn inline(value: &toml::Value, seed: u64) -> String {
    match value {
        toml::Value::Table(table) => format!("{{ {} }}", entries(table, seed).join(", ")),
        toml::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, seed)).collect();
            format!("[{}]", items.join(", "))
        }
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => value.to_string(),
    }
}

fn entries(table: &toml::Table, seed: u64) -> Vec<String> {
    let mut keys: Vec<&String> = table.keys().collect();
    keys.sort_by_key(|key| {
        let spread = key.bytes().fold(seed | 1, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        spread.wrapping_mul(seed | 1)
    });
    keys.iter().map(|key| format!("{} = {}", toml::Value::String((*key).clone()), inline(&table[*key], seed))).collect()
}

fn shuffled(text: &str, seed: u64) -> String {
    entries(&toml::from_str(text).unwrap(), seed).join("\n")
}

fn preview(application: &Application) -> Rendered {
    let settings = ClusterSettings::preview(application);
    rendered(application, &settings, &server(NEWEST_MINOR)).unwrap_or_else(|problems| panic!("{:#?}", problems.list))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_accepted_file_renders_in_the_published_shape(picked in proptest::sample::subsequence(PIECES, 0..9), seed in any::<u64>()) {
        let text = file(&picked);
        if let Ok(application) = hakopod::parse(text.as_bytes(), "x") {
            let whole = preview(&application);
            for object in &whole.objects {
                super::published::check(object).map_err(TestCaseError::fail)?;
            }
            let other = hakopod::parse(shuffled(&text, seed).as_bytes(), "x").unwrap();
            prop_assert_eq!(preview(&other), whole);
        }
    }
}

#[test]
fn every_piece_is_accepted_with_what_it_needs() {
    for piece in PIECES {
        let alone = hakopod::parse(file(&[piece]).as_bytes(), "x").is_ok();
        let port = hakopod::parse(file(&["port = 8080", piece]).as_bytes(), "x").is_ok();
        let public = hakopod::parse(file(&["port = 8080", "public = true", piece]).as_bytes(), "x").is_ok();
        assert!(alone || port || public, "{piece}");
    }
}

#[test]
fn the_order_of_keys_changes_no_object_of_the_corpus() {
    for (file, text) in corpus::texts() {
        let Ok(application) = hakopod::parse(text.as_bytes(), &file) else { continue };
        let settings = ClusterSettings::preview(&application);
        let Ok(first) = rendered(&application, &settings, &server(NEWEST_MINOR)) else { continue };
        for seed in [3, 12_345, u64::MAX] {
            let other = hakopod::parse(shuffled(&text, seed).as_bytes(), &file).unwrap();
            let second = rendered(&other, &settings, &server(NEWEST_MINOR)).unwrap();
            assert_eq!(yaml::documents(&first.objects), yaml::documents(&second.objects), "{file}");
        }
    }
}
