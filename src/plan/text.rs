//! Steps in words: what `plan` prints and the journal keeps.

use std::fmt;

use super::step::Step;

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preflight { slot, port, free_bytes, .. } => {
                write!(
                    formatter,
                    "check that port {port} of slot {slot} is free, and {} MiB of disk",
                    free_bytes / 1_048_576
                )
            }
            Self::EnsureNetwork { network } => {
                write!(formatter, "make the bridge {} ({})", network.bridge, network.name)
            }
            Self::EnsureIsolation { network } => write!(formatter, "close every way out of {}", network.bridge),
            Self::EnsureVhost { vhost } => {
                write!(formatter, "write the vhost {} for {}", vhost.file, vhost.hosts.join(", "))
            }
            Self::PrepareImage { image } => write!(formatter, "prepare the image {}", image.reference),
            Self::RemoveSlot { slot, grace_seconds } => {
                write!(formatter, "remove what is in slot {slot} (SIGKILL after {grace_seconds} s)")
            }
            Self::StartSlot { container } => {
                write!(formatter, "start slot {} with {}", container.slot, container.image)
            }
            Self::ResumeSlot { slot } => write!(formatter, "start slot {slot} again"),
            Self::AwaitHealth { slot, path, revision, within_seconds, .. } => write!(
                formatter,
                "wait at most {within_seconds} s for slot {slot} to say {} at {path}",
                revision.short()
            ),
            Self::SmokeSlot { slot, checks, .. } => {
                write!(formatter, "smoke: {} on slot {slot}", count(checks.len(), "check"))
            }
            Self::Route { slot } => write!(formatter, "route the traffic to slot {slot}"),
            Self::Unroute => formatter.write_str("take the traffic away: 503 `not released yet`"),
            Self::ConfirmEdge { hosts, revision, .. } => {
                write!(formatter, "confirm through the edge that {} answers on {}", revision.short(), hosts.join(", "))
            }
            Self::ProvePublic { hosts, checks, .. } => write!(
                formatter,
                "prove in public: health on {}, {} on the first",
                count(hosts.len(), "host"),
                count(checks.len(), "smoke check")
            ),
            Self::KeepSlot { slot, is_kept: true } => write!(formatter, "let slot {slot} start after a reboot"),
            Self::KeepSlot { slot, is_kept: false } => write!(formatter, "let slot {slot} stay down after a reboot"),
            Self::DrainSlot { slot, drain_seconds, grace_seconds } => write!(
                formatter,
                "stop slot {slot} {drain_seconds} s after the switch (SIGKILL {grace_seconds} s later)"
            ),
            Self::StopSlot { slot, grace_seconds } => {
                write!(formatter, "stop slot {slot} now (SIGKILL after {grace_seconds} s), and keep it")
            }
            Self::PruneImages { repository, keep } => {
                write!(formatter, "untag images of {repository} beyond {}", keep.join(", "))
            }
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
