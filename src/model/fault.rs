//! Reasons: one word for machines, one sentence for people, and whose fault it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who has to change something before another try makes sense (ruling 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The commit itself: its sha is quarantined.
    Commit,
    /// What is around it (engine, disk, edge, Git, network): held, tried again with back-off.
    Surroundings,
    /// Somebody or something decided so (a pause, a newer commit, a denial): nothing is wrong.
    Decision,
}

/// How a failed effect is followed up: the requeue matches on this, never on text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Goes away by itself: try again with back-off.
    Transient,
    /// Needs a person or another input: try again only on an event, or slowly.
    Stalled,
    /// A broken promise of our own.
    Bug,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $fault:ident,)*) => {
        /// Every reason there is, in one CamelCase word each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ReasonCode {
            $($(#[$doc])* $name,)*
        }

        impl ReasonCode {
            /// All of them, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Whose fault it is.
            #[must_use]
            pub fn fault(self) -> Fault {
                match self {
                    $(Self::$name => Fault::$fault,)*
                }
            }
        }
    };
}

reasons! {
    // The commit's own.
    /// The manifest is not at its path in this commit.
    ManifestMissing => Commit,
    /// The manifest is there and breaks a rule.
    ManifestInvalid => Commit,
    /// The manifest asks for what the registry does not give.
    NotAllowed => Commit,
    /// The image breaks a rule of the contract.
    ImageRefused => Commit,
    /// The image could not be built from the commit's tree.
    BuildFailed => Commit,
    /// The container ended by itself before it was healthy.
    CrashedAtStart => Commit,
    /// The health check answered, and never as the contract asks.
    NeverHealthy => Commit,
    /// The container says that it is another commit.
    WrongSha => Commit,
    /// A smoke check on the idle slot failed.
    SmokeFailed => Commit,
    /// Health or smoke failed in public, after the switch.
    PublicProofFailed => Commit,

    // The surroundings.
    /// The image for this commit is not on this host yet.
    ImageMissing => Surroundings,
    /// Git could not be read.
    GitUnavailable => Surroundings,
    /// The tracked branch does not exist (any more).
    BranchGone => Surroundings,
    /// GitHub's API could not be asked.
    GithubUnavailable => Surroundings,
    /// The Docker engine does not answer, or failed.
    EngineUnavailable => Surroundings,
    /// Not enough bytes or inodes.
    DiskFull => Surroundings,
    /// Something else holds the slot's port.
    PortTaken => Surroundings,
    /// A container or network of that name exists and is not ours.
    NameTaken => Surroundings,
    /// Isolation cannot be made or proved on this host.
    IsolationUnavailable => Surroundings,
    /// Caddy does not answer, or does not serve what it was told.
    EdgeUnavailable => Surroundings,
    /// Loading our vhost would change or break something else.
    EdgeRefused => Surroundings,
    /// The certificate that the vhost names is not there.
    CertificateMissing => Surroundings,
    /// The registry or host file on disk is broken; the last good one rules.
    ConfigInvalid => Surroundings,
    /// The registry or the manifest uses something that this version does not do yet (ruling 11).
    NotBuilt => Surroundings,
    /// A step's own bound was reached.
    StepTimedOut => Surroundings,
    /// Our own records could not be written.
    StoreUnavailable => Surroundings,
    /// A broken promise of our own.
    Bug => Surroundings,

    // Decisions.
    /// A person paused the target.
    Paused => Decision,
    /// This sha failed before and is not tried again (promise P5).
    Quarantined => Decision,
    /// Outside every allowed window, or inside a denied one.
    OutsideWindow => Decision,
    /// The CI run for this sha has not finished.
    CiPending => Decision,
    /// The CI run for this sha failed.
    CiRed => Decision,
    /// The CI run for this sha was cancelled.
    CiCancelled => Decision,
    /// No CI run for this sha is known.
    CiMissing => Decision,
    /// The plan waits for `trueup approve`.
    NeedsApproval => Decision,
    /// A person denied the plan.
    Denied => Decision,
    /// A newer commit is wanted.
    Superseded => Decision,
    /// A person holds the target at another revision.
    Pinned => Decision,
    /// The branch moved backwards or sideways; a second look must agree first (ruling 10).
    NonFastForward => Decision,
    /// Waiting after a failure of the surroundings.
    BackOff => Decision,
    /// The target is no longer in the registry (ruling 4).
    Orphaned => Decision,
    /// The daemon was stopped in the middle and undid what it had begun.
    Interrupted => Decision,
    /// The public path could not be proven, though the direct one is good (ruling 36).
    PublicUnproven => Surroundings,
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why something is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// One word, for machines.
    pub code: ReasonCode,
    /// One or two sentences, for people: what, why, and what to do.
    pub message: String,
    /// Evidence, for example the last log lines or an answer's status; may be many lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Reason {
    /// A reason without evidence.
    pub fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), evidence: None }
    }

    /// The same reason with evidence beside it.
    #[must_use]
    pub fn with_evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = Some(evidence.into());
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}
