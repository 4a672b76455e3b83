//! Live: nothing gets out of a bridge, asked from inside a container; and the rules' own life.

use std::net::UdpSocket;
use std::process::Command;

use futures_util::future::join_all;

use super::bench::get;
use super::*;

/// Every IPv4 address of this host but loopback.
fn host_addresses() -> Vec<String> {
    let output = Command::new("ip").args(["-4", "-o", "addr", "show", "scope", "global"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let address = |line: &str| Some(line.split_whitespace().nth(3)?.split('/').next()?.to_owned());
    let found: Vec<String> = text.lines().filter_map(address).collect();
    assert!(!found.is_empty(), "this host has no address but loopback");
    found
}

/// Listeners on every address of this host.
struct Ears {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Ears {
    fn new() -> Self {
        let ears = Self { tcp: TcpListener::bind("0.0.0.0:0").unwrap(), udp: UdpSocket::bind("0.0.0.0:0").unwrap() };
        ears.tcp.set_nonblocking(true).unwrap();
        ears.udp.set_nonblocking(true).unwrap();
        ears
    }

    fn tcp_port(&self) -> String {
        self.tcp.local_addr().unwrap().port().to_string()
    }

    fn udp_port(&self) -> String {
        self.udp.local_addr().unwrap().port().to_string()
    }

    /// Whether a connection and a datagram came in since the last look.
    fn heard(&self) -> (bool, bool) {
        (self.tcp.accept().is_ok(), self.udp.recv(&mut [0; 16]).is_ok())
    }
}

/// What a container may try: this host's addresses, another container, metadata services, the
/// outside, and names.
fn probes(hosts: &[String], neighbour: &str, gateway: &str, ears: &Ears) -> Vec<Vec<String>> {
    let (tcp, udp) = (ears.tcp_port(), ears.udp_port());
    let mut probes: Vec<[&str; 4]> = Vec::new();
    for host in hosts {
        probes.push(["probe", "tcp", host, &tcp]);
        probes.push(["probe", "udp", host, &udp]);
    }
    probes.push(["probe", "tcp", neighbour, "8080"]);
    for (host, port) in [("169.254.169.254", "80"), ("192.0.2.1", "443"), ("192.0.2.1", "53"), ("1.1.1.1", "443")] {
        probes.push(["probe", "tcp", host, port]);
    }
    for server in ["127.0.0.11", "127.0.0.1", gateway, "192.0.2.1"] {
        probes.push(["probe", "dns", server, "example.com"]);
    }
    probes.iter().map(|words| words.map(str::to_owned).to_vec()).collect()
}

#[tokio::test]
async fn nothing_gets_out_of_a_container_and_the_published_port_still_answers() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    bench.serving(Slot::A).await;
    let inside = bench.target.container(Slot::A);
    // A container on the engine's default bridge is a destination, and shows that the probes work.
    let outside = format!("{}.outside", bench.target.project);
    bench.foreign_container(&outside, Default::default()).await;
    let ears = Ears::new();
    let open = bench.gateway(&outside).await;
    let control = bench.exec(&outside, &["probe", "tcp", &open, &ears.tcp_port()]).await;
    assert_eq!(control, "connected");
    assert_eq!(bench.exec(&outside, &["probe", "udp", &open, &ears.udp_port()]).await, "sent");
    app::eventually("the control's datagram", async || ears.udp.peek(&mut [0; 16]).is_ok()).await;
    assert_eq!(ears.heard(), (true, true));

    let gateway = bench.gateway(&inside).await;
    let hosts = host_addresses();
    assert!(hosts.contains(&gateway), "{hosts:?} has the bridge's own address {gateway}");
    let neighbour = bench.address(&outside).await;
    let probes = probes(&hosts, &neighbour, &gateway, &ears);
    let answers = join_all(probes.iter().map(|words| async {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (words.join(" "), bench.exec(&inside, &words).await)
    }));
    for (words, answer) in answers.await {
        let is_out = answer == "connected" || answer.starts_with("answered: code 0");
        assert!(!is_out, "{words}: {answer}");
    }
    // Datagrams are sent into nothing: none of them arrived, and no connection did.
    assert_eq!(ears.heard(), (false, false));

    // Nor does anybody come in, but this host over loopback.
    let address = bench.address(&inside).await;
    assert_ne!(bench.exec(&outside, &["probe", "tcp", &address, "8080"]).await, "connected");
    let port = bench.spec(Slot::A, 1).host_port;
    for host in &hosts {
        assert!(TcpStream::connect((host.as_str(), port)).is_err(), "{host}:{port} answers");
    }
    assert_eq!(get(port, "/release").unwrap(), format!("{} a", bench.sha));
}

#[tokio::test]
async fn the_two_seats_of_a_target_do_not_reach_each_other() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    for (slot, release) in [(Slot::A, 1), (Slot::B, 2)] {
        bench.start(&bench.spec(slot, release)).await.unwrap();
        bench.serving(slot).await;
    }
    let other = bench.address(&bench.target.container(Slot::B)).await;
    let answer = bench.exec(&bench.target.container(Slot::A), &["probe", "tcp", &other, "8080"]).await;
    assert_ne!(answer, "connected");
}

/// A network namespace of its own, so that rules can come and go without touching this host's.
struct Namespace(String);

impl Namespace {
    fn new() -> Self {
        let name = app::unique("trueup-");
        let made = Command::new("ip").args(["netns", "add", &name]).output().unwrap();
        assert!(made.status.success(), "network namespaces need root: {made:?}");
        Self(name)
    }

    fn run(&self, words: &[&str]) {
        let output = Command::new("ip").args(["netns", "exec", &self.0]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", &self.0]).output().unwrap();
    }
}

async fn complete(firewall: &Firewall) -> bool {
    firewall.missing().await.unwrap().is_empty()
}

#[tokio::test]
async fn rules_that_vanish_or_change_are_missed_and_put_back_with_nft() {
    let namespace = Namespace::new();
    let firewall = Firewall::of_namespace(&namespace.0, true);
    assert!(!complete(&firewall).await);
    for breaking in [
        "flush ruleset",
        "delete table inet trueup",
        "flush chain inet trueup input",
        "insert rule inet trueup forward accept",
        "add rule inet trueup input iifname tu-* accept",
    ] {
        firewall.ensure().await.unwrap();
        firewall.ensure().await.unwrap();
        assert!(complete(&firewall).await);
        let mut words = vec!["nft"];
        words.extend(breaking.split(' '));
        namespace.run(&words);
        assert!(!complete(&firewall).await, "{breaking}");
    }
    firewall.ensure().await.unwrap();
    assert!(complete(&firewall).await);
}

#[tokio::test]
async fn rules_that_vanish_or_change_are_missed_and_put_back_with_iptables() {
    let namespace = Namespace::new();
    let firewall = Firewall::of_namespace(&namespace.0, false);
    assert!(!complete(&firewall).await);
    for breaking in [
        "iptables -F",
        "iptables -F TRUEUP",
        "iptables -D INPUT -j TRUEUP",
        "iptables -I FORWARD 1 -j ACCEPT",
        "iptables -I TRUEUP 1 -j RETURN",
        "ip6tables -F",
    ] {
        firewall.ensure().await.unwrap();
        firewall.ensure().await.unwrap();
        assert!(complete(&firewall).await);
        namespace.run(&breaking.split(' ').collect::<Vec<_>>());
        assert!(!complete(&firewall).await, "{breaking}");
    }
    firewall.ensure().await.unwrap();
    assert!(complete(&firewall).await);
}

#[tokio::test]
async fn rules_that_cannot_be_set_refuse_the_release_and_say_why() {
    for prefers_nft in [true, false] {
        let firewall = Firewall::of_namespace("no-such-namespace", prefers_nft);
        let error: TargetError = firewall.ensure().await.unwrap_err().into();
        assert_eq!((error.reason.code, error.class), (ReasonCode::IsolationUnavailable, Class::Stalled));
        assert!(error.reason.message.contains("CAP_NET_ADMIN"), "{error}");
        assert!(firewall.missing().await.is_err(), "unreadable is not complete");
    }
}
