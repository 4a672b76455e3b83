//! What is around a release fails: it is held with a name, never blamed on the commit, and goes on by
//! itself once that is repaired.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::app::AppSpec;
use super::client::Client;
use super::engine::Engine;
use super::process::Process;
use super::world::{Options, PATIENCE, World};

#[test]
fn a_release_waits_while_caddy_is_away() {
    let mut world = World::start();
    world.release(&AppSpec::page("shop one"));
    world.kill_caddy();
    let next = world.push(&AppSpec::page("shop two"));
    world.held("EdgeUnavailable");
    world.start_caddy();
    assert_eq!(world.page(), "shop one");
    world.ended(&next, "live");
    world.settled(&next);
    let why = world.about("why", &["--json", &next]).ended(0).json();
    assert!(why["quarantine"].is_null(), "{why:#}");
}

#[test]
fn a_release_waits_while_something_else_holds_its_port() {
    let world = World::start();
    world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let port = world.slots[1];
    let squatter = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let next = world.push(&AppSpec::page("shop two"));
    let held = world.held("PortTaken");
    let message = held["message"].as_str().unwrap();
    assert!(message.contains(&port.to_string()), "{message}");
    assert!(message.contains(&std::process::id().to_string()), "it does not say who: {message}");
    assert_eq!(world.tries(&next), 0);
    drop(squatter);
    world.ended(&next, "live");
    client.assert_never_failed("a port that was taken");
}

#[test]
fn an_object_of_the_same_name_that_is_not_ours_is_left_alone() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    let name = world.container("b");
    let image = format!("huta-build/{}:{}", world.project, &first[..12]);
    let id = world.engine().create(&name, &image);
    let next = world.push(&AppSpec::page("shop two"));
    let held = world.held("NameTaken");
    assert!(held["message"].as_str().unwrap().contains(&name), "{held:#}");
    world.about("sync", &[]).ended(5);
    assert_eq!((world.tries(&next), world.page()), (0, "shop one".to_owned()));
    let stranger = world.engine().container(&name).unwrap();
    assert_eq!((&stranger["Id"], &stranger["State"]["Status"]), (&id.into(), &"created".into()));
    world.engine().remove(&name);
    world.about("retry", &[]).ended(0);
    world.ended(&next, "live");
    assert_eq!(world.page(), "shop two");
}

/// An engine of the test's own, which it may stop.
struct PrivateEngine {
    dir: tempfile::TempDir,
    process: Option<Process>,
}

impl PrivateEngine {
    fn start() -> Self {
        let mut engine = Self { dir: tempfile::tempdir().unwrap(), process: None };
        engine.launch();
        engine
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    fn launch(&mut self) {
        let dir = self.dir.path();
        let mut command = Command::new("dockerd");
        command.arg("--data-root").arg(dir.join("data")).arg("--exec-root").arg(dir.join("exec"));
        command
            .arg("--pidfile")
            .arg(dir.join("docker.pid"))
            .arg("-H")
            .arg(format!("unix://{}", self.socket().display()));
        // No address, no rule and no bridge of the host's own engine is touched.
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]);
        command.args(["--default-address-pool", "base=10.213.0.0/16,size=24"]);
        let mut process = Process::start(command, &dir.join("dockerd.log"));
        let began = std::time::Instant::now();
        while !Engine::at(&self.socket()).is_there() {
            assert!(!process.has_ended() && began.elapsed() < PATIENCE, "no private engine:\n{}", process.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        self.process = Some(process);
    }

    fn end(&mut self, signal: Signal) {
        let Some(process) = self.process.take() else { return };
        if signal == Signal::KILL {
            process.kill();
            // A service manager would end the engine's helper with it.
            let pid_file = self.dir.path().join("exec/containerd/containerd.pid");
            let helper =
                std::fs::read_to_string(&pid_file).ok().and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
            helper.map(|pid| rustix::process::kill_process(pid, Signal::KILL).ok());
            // What dead processes leave there would stop their successors.
            for file in [pid_file, self.dir.path().join("docker.pid")] {
                std::fs::remove_file(file).ok();
            }
        } else {
            process.terminate(Duration::from_secs(60));
        }
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.end(Signal::TERM);
        }
        // A second panic would end the process before anything is cleaned up.
        if let Some(process) = self.process.take() {
            eprintln!("---- dockerd\n{}", process.log());
            drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| process.terminate(Duration::from_secs(60)))));
        }
    }
}

#[test]
fn a_restart_of_the_engine_in_the_middle_of_a_release_is_not_the_commits_fault() {
    let mut engine = PrivateEngine::start();
    let world = World::with(Options { engine: engine.socket(), ..Options::default() });
    world.release(&AppSpec::page("shop one"));
    for (signal, page) in [(Signal::TERM, "shop two"), (Signal::KILL, "shop three")] {
        let sha = world.push(&AppSpec::page(page).with("health", "unhealthy"));
        world.reached(&sha, "wait at most");
        let port = world.slot_port(&sha);
        world.tell(port, "health=unhealthy");
        engine.end(signal);
        engine.launch();
        // The engine ended the container; what runs now began anew, as unhealthy as before.
        world.until(&format!("{sha} is live after {signal:?}"), || {
            super::http::get(port, "127.0.0.1", "/set?health=ok").ok();
            (world.status()["live"]["revision"] == sha.as_str()).then_some(())
        });
        let why = world.about("why", &["--json", &sha]).ended(0).json();
        assert!(why["quarantine"].is_null(), "{why:#}");
        let releases = why["releases"].as_array().unwrap();
        let words: Vec<&str> = releases.iter().filter_map(|release| release["reason"]["code"].as_str()).collect();
        assert!(!words.contains(&"NeverHealthy") && !words.contains(&"CrashedAtStart"), "{releases:#?}");
        world.settled(&sha);
        assert_eq!(world.page(), page);
    }
}
