//! The contract's image rules, as a decision over what the engine says of an image.
//!
//! Source: app.toml contract, 'The image', 'Enforced'; ruling 2 (labels of ours), ruling 42 (the
//! id is never the only proof: the labels are compared too).

use std::collections::BTreeMap;

use crate::model::desired::ImageRequest;

/// The label that names the commit.
pub(super) const LABEL_REVISION: &str = "org.opencontainers.image.revision";
/// The label that names the project.
pub(super) const LABEL_PROJECT: &str = "run.huta.project";
/// Labels that only we set, and only on what we make.
const OUR_PREFIX: &str = "run.trueup.";

/// What the rules look at.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ImageFacts {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) user: String,
    pub(super) os: String,
    pub(super) architecture: String,
    pub(super) volumes: Vec<String>,
}

/// Every rule that the image breaks, one sentence with what to do for each.
pub(super) fn broken(request: &ImageRequest, facts: &ImageFacts) -> Vec<String> {
    let wanted = [(LABEL_REVISION, request.revision.as_str()), (LABEL_PROJECT, request.project.as_str())];
    let mut broken: Vec<String> = wanted.iter().filter_map(|(name, value)| label(facts, name, value)).collect();
    if is_root(&facts.user) {
        broken.push(format!(
            "its USER is `{}`, which is root; set one that is not, for example `USER 20001:20001`",
            facts.user
        ));
    }
    if (facts.os.as_str(), facts.architecture.as_str()) != ("linux", "amd64") {
        broken.push(format!(
            "its platform is {}/{}; build it for linux/amd64 (`--platform linux/amd64`)",
            facts.os, facts.architecture
        ));
    }
    if !facts.volumes.is_empty() {
        broken.push(format!(
            "it declares VOLUME {}, which would be unbounded writable storage; remove it, data belongs on the data volume",
            facts.volumes.join(" ")
        ));
    }
    let ours = facts.labels.keys().filter(|name| name.starts_with(OUR_PREFIX));
    broken.extend(
        ours.map(|name| format!("it carries the label `{name}`, which only trueup sets on containers; remove it")),
    );
    broken
}

fn label(facts: &ImageFacts, name: &str, wanted: &str) -> Option<String> {
    match facts.labels.get(name) {
        Some(value) if value == wanted => None,
        Some(value) => Some(format!("its label {name} is `{value}` and must be `{wanted}`; build it from that commit")),
        None => Some(format!("its label {name} is missing and must be `{wanted}`; build it with that label")),
    }
}

/// Whether the user part is empty, `root`, or any way to write the number 0.
///
/// The engine reads a number as Go's `strconv.Atoi` does: a sign and leading zeros are fine.
fn is_root(user: &str) -> bool {
    let name = user.split(':').next().unwrap_or_default().trim();
    name.is_empty() || name == "root" || name.parse::<i128>() == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        facts: ImageFacts,
        broken: Vec<String>,
    }

    fn request() -> ImageRequest {
        crate::tests::app::request("shop", &"a".repeat(40), crate::model::policy::ImageFrom::Local)
    }

    #[test]
    fn images_are_judged_as_their_cases_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/image/rules.json");
        let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in cases {
            assert_eq!(broken(&request(), &case.facts), case.broken, "{}", case.name);
        }
    }

    #[test]
    fn every_way_to_write_root_is_root() {
        for user in
            ["", " ", "root", "root:root", "root:20001", "0", "0:0", "00", "000:1000", "+0", "-0", ":20001", " root"]
        {
            assert!(is_root(user), "`{user}`");
        }
        for user in ["20001", "20001:20001", "1000:0", "app", "app:root", "rooty", "01"] {
            assert!(!is_root(user), "`{user}`");
        }
    }
}
