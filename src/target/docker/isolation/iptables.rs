//! The rules as one chain of iptables, for hosts without nft.
//!
//! Source: iptables(8), iptables-restore(8). The engine puts its own jumps in front when it
//! restarts; the check notices that ours are no longer first.

use std::path::PathBuf;

use super::{Firewall, FirewallError};

/// As `iptables -S` prints them back.
const RULES: [&str; 3] = [
    "-A TRUEUP -i tu-+ -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN",
    "-A TRUEUP -i tu-+ -j DROP",
    "-A TRUEUP -o tu-+ -m conntrack --ctstate NEW -j DROP",
];
/// Chains that jump to ours before anything else.
const HOOKS: [&str; 2] = ["FORWARD", "INPUT"];
/// Seconds to wait for the lock that iptables takes.
const LOCK_SECONDS: &str = "5";

/// The programs of one address family.
#[derive(Debug, Clone)]
pub(super) struct Family {
    list: PathBuf,
    restore: PathBuf,
}

/// Both families as far as they are installed; none without the first.
pub(super) fn families(find: impl Fn(&str) -> Option<PathBuf>) -> Vec<Family> {
    let family = |list: &str, restore: &str| Some(Family { list: find(list)?, restore: find(restore)? });
    let Some(four) = family("iptables", "iptables-restore") else {
        return Vec::new();
    };
    [Some(four), family("ip6tables", "ip6tables-restore")].into_iter().flatten().collect()
}

async fn listing(firewall: &Firewall, family: &Family) -> Result<String, FirewallError> {
    firewall.run(&family.list, &["-w", LOCK_SECONDS, "-S"], "").await?.success()
}

/// What the chains lack.
pub(super) async fn missing(firewall: &Firewall, families: &[Family]) -> Result<Vec<String>, FirewallError> {
    let mut missing = Vec::new();
    for family in families {
        let name = family.list.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lacks = compare(&listing(firewall, family).await?);
        missing.extend(lacks.into_iter().map(|what| format!("{name}: {what}")));
    }
    Ok(missing)
}

/// Sets each family's chain in one transaction.
pub(super) async fn apply(firewall: &Firewall, families: &[Family]) -> Result<(), FirewallError> {
    for family in families {
        let text = transaction(&listing(firewall, family).await?);
        let arguments = ["--noflush", "-w", LOCK_SECONDS];
        firewall.run(&family.restore, &arguments, &text).await?.success()?;
    }
    Ok(())
}

fn compare(listing: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for hook in HOOKS {
        let prefix = format!("-A {hook} ");
        let first = listing.lines().find(|line| line.starts_with(&prefix));
        if first != Some(format!("-A {hook} -j TRUEUP").as_str()) {
            missing.push(format!("the first rule of {hook} is not the jump to chain TRUEUP"));
        }
    }
    let rules: Vec<&str> = listing.lines().filter(|line| line.starts_with("-A TRUEUP ")).collect();
    if rules != RULES {
        missing.push("the rules of chain TRUEUP are not complete".to_owned());
    }
    missing
}

/// Empties the chain (naming it does), fills it, and moves its jumps to the front.
fn transaction(listing: &str) -> String {
    let mut text = "*filter\n:TRUEUP - [0:0]\n".to_owned();
    for rule in RULES {
        text.push_str(rule);
        text.push('\n');
    }
    for hook in HOOKS {
        let jump = format!("{hook} -j TRUEUP");
        let count = listing.lines().filter(|line| *line == format!("-A {jump}")).count();
        text.push_str(&format!("-D {jump}\n").repeat(count));
        text.push_str(&format!("-I {hook} 1 -j TRUEUP\n"));
    }
    text.push_str("COMMIT\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> String {
        let jumps = "-P INPUT ACCEPT\n-N TRUEUP\n-A INPUT -j TRUEUP\n-A FORWARD -j TRUEUP\n-A FORWARD -j DOCKER-USER\n";
        format!("{jumps}{}\n", RULES.join("\n"))
    }

    #[test]
    fn a_complete_listing_lacks_nothing() {
        assert_eq!(compare(&complete()), Vec::<String>::new());
    }

    #[test]
    fn a_jump_that_is_not_first_is_missed_and_moved() {
        let text = complete().replace("-A FORWARD -j TRUEUP\n", "");
        let text = format!("{text}-A FORWARD -j TRUEUP\n");
        assert_eq!(compare(&text), ["the first rule of FORWARD is not the jump to chain TRUEUP"]);
        assert!(transaction(&text).contains("-D FORWARD -j TRUEUP\n-I FORWARD 1 -j TRUEUP\n"));
    }

    #[test]
    fn every_rule_taken_away_or_added_is_missed() {
        for rule in RULES {
            assert_eq!(compare(&complete().replace(rule, "")).len(), 1, "{rule}");
        }
        assert_eq!(compare(&format!("{}-A TRUEUP -j ACCEPT\n", complete())).len(), 1);
    }
}
