//! Releases that go well, and what is left after them.

use super::app::AppSpec;
use super::client::Client;
use super::world::{Options, TARGET, World};

#[test]
fn the_first_commit_goes_live_behind_caddy_and_the_next_one_replaces_it_without_a_lost_request() {
    let world = World::start();
    world.held("BranchGone");
    let first = world.release(&AppSpec::page("shop one"));
    assert_eq!(world.page(), "shop one");
    let status = world.settled(&first);
    assert_eq!((&status["live"]["slot"], &status["tip"]), (&"a".into(), &first.clone().into()));

    let client = Client::start(world.site());
    let second = world.release(&AppSpec::page("shop two"));
    assert_eq!(world.page(), "shop two");
    let old = world.container("a");
    world.until("the old slot is drained", || (!world.engine().is_running(&old)).then_some(()));
    client.assert_never_failed("a replacement");
    assert_eq!(world.settled(&second)["live"]["slot"], "b");
    let container = world.engine().container(&world.container("b")).unwrap();
    assert_eq!(container["HostConfig"]["RestartPolicy"]["Name"], "unless-stopped");
    assert_eq!(world.engine().container(&old).unwrap()["HostConfig"]["RestartPolicy"]["Name"], "no");
}

#[test]
fn old_images_are_untagged_and_those_in_use_are_kept() {
    let world = World::with(Options { keep_releases: 1, ..Options::default() });
    let repository = format!("huta-build/{}", world.project);
    let tag = |sha: &str| format!("{repository}:{}", &sha[..12]);
    let shas: Vec<String> =
        ["one", "two", "three"].map(|page| world.release(&AppSpec::page(&format!("shop {page}")))).into();
    let mut wanted = vec![tag(&shas[1]), tag(&shas[2])];
    wanted.sort();
    // The second one's container is stopped and kept in its slot, so its image is in use.
    world.until("the first image is untagged", || (world.engine().tags(&repository) == wanted).then_some(()));
    world.until("the journal says so", || world.about("log", &[]).stdout.contains("untagged").then_some(()));
}

#[test]
fn a_change_of_the_registry_is_a_new_generation_of_the_live_commit() {
    let mut world = World::start();
    let sha = world.release(&AppSpec::page("shop one"));
    world.set_env("GREETING", "good morning");
    world.until("the variable is there", || {
        world.ask("/env").ok().filter(|answer| answer.body.contains("GREETING=good morning"))
    });
    world.settled(&sha);
    let releases = world.releases();
    assert_eq!(releases.len(), 2, "{releases:#?}");
    assert_eq!((&releases[0]["trigger"], &releases[0]["revision"]), (&"registry".into(), &sha.clone().into()));

    // A broken edit keeps the last good one.
    let good = std::fs::read_to_string(world.registry_file()).unwrap();
    std::fs::write(world.registry_file(), good.replace("memory = \"64m\"", "memory = \"a lot\"")).unwrap();
    let next = world.release(&AppSpec::page("shop two"));
    assert!(world.ask("/env").unwrap().body.contains("GREETING=good morning"));
    let status = world.status();
    let conditions = status["conditions"].as_array().unwrap();
    let broken = conditions.iter().find(|condition| condition["kind"] == "ConfigValid");
    let broken = broken.unwrap_or_else(|| panic!("status does not say that the registry is broken: {status:#}"));
    assert_eq!((&broken["is_true"], &broken["reason"]), (&false.into(), &"ConfigInvalid".into()));
    assert!(broken["message"].as_str().unwrap().contains("memory"), "{broken:#}");

    // Nor does a start with a broken file make an orphan of what runs.
    assert!(world.stop_daemon().success());
    world.start_daemon();
    world.held("ConfigInvalid");
    assert_eq!((&world.status()["state"], world.serves(&next)), (&"held".into(), true));

    std::fs::write(world.registry_file(), good).unwrap();
    world.until("the registry is good again", || {
        let status = world.status();
        let conditions = status["conditions"].as_array()?;
        conditions.iter().find(|one| one["kind"] == "ConfigValid" && one["is_true"] == true).map(|_| ())
    });
    assert_eq!(world.settled(&next)["live"]["revision"], next);
}

#[test]
fn a_site_serves_while_the_daemon_is_dead() {
    let mut world = World::start();
    let sha = world.release(&AppSpec::page("shop one"));
    world.kill_daemon();
    let client = Client::start(world.site());
    assert_eq!(world.page(), "shop one");
    // Its operator is not blind either (ruling 27).
    world.about("status", &[]).ended(4);
    world.about("why", &[]).ended(4);
    let status = world.about("status", &["--offline", "--json"]).ended(0).json();
    assert_eq!((&status["live"]["revision"], &status["state"]), (&sha.clone().into(), &"live".into()));
    assert_eq!(world.about("releases", &["--offline", "--json"]).ended(0).json()[0]["state"], "live");
    assert!(world.about("why", &["--offline"]).ended(0).stdout.contains("is live as release"));
    // A container that ends is started again by the engine, without the daemon.
    let container = world.container("a");
    let before = world.engine().container(&container).unwrap()["RestartCount"].clone();
    client.assert_never_failed("the daemon is dead");
    drop(client);
    world.ask("/exit").ok();
    world.until("the engine started it again", || {
        (world.engine().container(&container)?["RestartCount"] != before && world.serves(&sha)).then_some(())
    });
    // What was pushed meanwhile is taken up at the next start.
    let next = world.push(&AppSpec::page("shop two"));
    world.start_daemon();
    world.ended(&next, "live");
    assert_eq!(world.page(), "shop two");
    assert!(world.stop_daemon().success());
    assert_eq!(world.page(), "shop two");
    let name = format!("{}.{TARGET}.b", world.project);
    assert!(world.engine().is_running(&name));
}
