//! CPU and memory: what people write, as exact numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest text of a quantity, in bytes.
const MAX_TEXT: usize = 32;
/// 1 MiB, in bytes.
pub(super) const MIB: u64 = 1 << 20;
/// Binary units, largest first, so that the largest exact one is written.
const BINARY: [(&str, u64); 4] = [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", MIB), ("Ki", 1 << 10)];
const DECIMAL: [(&str, u64); 4] = [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)];

/// Why a text is not a quantity. It never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The form is not that of the quantity.
    #[error("is not a quantity of this kind")]
    Form,
    /// Below the least or above the most.
    #[error("is out of bounds")]
    Bounds,
}

/// CPU time in thousandths of a core, 1 to 64000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpu(u32);

/// Memory in bytes, 1 MiB to 256 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Memory(u64);

impl Cpu {
    /// Thousandths of a core.
    #[must_use]
    pub fn milli(self) -> u32 {
        self.0
    }
}

impl Memory {
    /// Bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }
}

/// Plain digits, at most 19 of them: everything that fits is far above every bound.
fn digits(text: &str) -> Result<u64, QuantityError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Form);
    }
    text.parse().map_err(|_| QuantityError::Bounds)
}

impl FromStr for Cpu {
    type Err = QuantityError;
    /// `^(?:[0-9]+(?:\.[0-9]{1,3})?|[0-9]+m)$`, 1m to 64 cores.
    ///
    /// Source: rule book, section 10.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_TEXT {
            return Err(QuantityError::Form);
        }
        let milli = if let Some(milli) = text.strip_suffix('m') {
            digits(milli)?
        } else {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            if !(1..=3).contains(&fraction.len()) {
                return Err(QuantityError::Form);
            }
            let thousandths = digits(&format!("{fraction:0<3}"))?;
            digits(whole)?.saturating_mul(1000).saturating_add(thousandths)
        };
        match u32::try_from(milli) {
            Ok(milli @ 1..=64_000) => Ok(Self(milli)),
            Ok(_) | Err(_) => Err(QuantityError::Bounds),
        }
    }
}

impl FromStr for Memory {
    type Err = QuantityError;
    /// `^[0-9]+(?:Ki|Mi|Gi|Ti|k|M|G|T)?$`, 1Mi to 256Gi.
    ///
    /// Source: rule book, section 10.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_TEXT {
            return Err(QuantityError::Form);
        }
        let unit = |(unit, factor): &(&str, u64)| text.strip_suffix(unit).map(|number| (number, *factor));
        let (number, factor) = BINARY.iter().chain(&DECIMAL).find_map(unit).unwrap_or((text, 1));
        let bytes = digits(number)?.saturating_mul(factor);
        if (MIB..=256 << 30).contains(&bytes) { Ok(Self(bytes)) } else { Err(QuantityError::Bounds) }
    }
}

impl fmt::Display for Cpu {
    /// Always millicores: `1500m`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}m", self.0)
    }
}

impl fmt::Display for Memory {
    /// The largest binary unit that is exact, else bytes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BINARY.iter().find(|(_, factor)| self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(formatter, "{}{unit}", self.0 / factor),
            None => write!(formatter, "{}", self.0),
        }
    }
}

impl TryFrom<String> for Cpu {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<Self, QuantityError> {
        text.parse()
    }
}

impl TryFrom<String> for Memory {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<Self, QuantityError> {
        text.parse()
    }
}

impl From<Cpu> for String {
    fn from(cpu: Cpu) -> Self {
        cpu.to_string()
    }
}

impl From<Memory> for String {
    fn from(memory: Memory) -> Self {
        memory.to_string()
    }
}

/// `resources`: what replaces single values of the profile. At least one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Replaces the profile's CPU request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_request: Option<Cpu>,
    /// Replaces the profile's CPU limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Cpu>,
    /// Replaces the profile's memory request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_request: Option<Memory>,
    /// Replaces the profile's memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Memory>,
}

/// The budget of one replica. Requests never exceed limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// CPU that the scheduler reserves.
    pub cpu_request: Cpu,
    /// CPU above which it is throttled.
    pub cpu_limit: Cpu,
    /// Memory that the scheduler reserves.
    pub memory_request: Memory,
    /// Memory above which it is killed.
    pub memory_limit: Memory,
}

/// `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// 120m/600m, 154Mi/308Mi. The default.
    #[default]
    Small,
    /// 300m/1200m, 308Mi/615Mi.
    Medium,
    /// 600m/2400m, 615Mi/1229Mi.
    Large,
    /// 1200m/4800m, 2458Mi/4916Mi.
    Compute,
    /// 2/8 cores, 8Gi/16Gi.
    Gpu,
}

impl Size {
    /// The words of the file.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("small", Self::Small),
        ("medium", Self::Medium),
        ("large", Self::Large),
        ("compute", Self::Compute),
        ("gpu", Self::Gpu),
    ];

    /// The profile's budget for one replica.
    ///
    /// Source: Hakopod TOML schema v1, table of profiles.
    #[must_use]
    pub fn profile(self) -> Profile {
        let profile = |cpu: (u32, u32), memory_mib: (u64, u64)| Profile {
            cpu_request: Cpu(cpu.0),
            cpu_limit: Cpu(cpu.1),
            memory_request: Memory(memory_mib.0 * MIB),
            memory_limit: Memory(memory_mib.1 * MIB),
        };
        match self {
            Self::Small => profile((120, 600), (154, 308)),
            Self::Medium => profile((300, 1200), (308, 615)),
            Self::Large => profile((600, 2400), (615, 1229)),
            Self::Compute => profile((1200, 4800), (2458, 4916)),
            Self::Gpu => profile((2000, 8000), (8192, 16384)),
        }
    }
}

impl Profile {
    /// The profile with single values replaced.
    #[must_use]
    pub fn with(self, resources: Option<&Resources>) -> Self {
        let Some(own) = resources else { return self };
        Self {
            cpu_request: own.cpu_request.unwrap_or(self.cpu_request),
            cpu_limit: own.cpu_limit.unwrap_or(self.cpu_limit),
            memory_request: own.memory_request.unwrap_or(self.memory_request),
            memory_limit: own.memory_limit.unwrap_or(self.memory_limit),
        }
    }
}
