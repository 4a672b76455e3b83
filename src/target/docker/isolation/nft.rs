//! The rules as one nftables table, replaced in one transaction.
//!
//! Source: nft(8), libnftables-json(5).

use std::path::Path;

use serde_json::Value;

use super::{Firewall, FirewallError};

/// Creating the table first makes the deletion valid when there is none; the whole text is one
/// transaction, so there is no moment without rules. The file is also what a unit feeds to `nft` at a boot, before
/// the engine starts any container.
pub(super) const TEXT: &str = include_str!("../../../../deploy/systemd/trueup.nft");

/// A chain and its rules, in the words of [`rule_text`].
type Chain = (&'static str, &'static [&'static str]);

const EXPECTED: [Chain; 2] = [
    (
        "forward",
        &[
            "iifname tu-* · state established,related · accept",
            "iifname tu-* · drop",
            "oifname tu-* · state new · drop",
        ],
    ),
    ("input", &["iifname tu-* · state established,related · accept", "iifname tu-* · drop"]),
];

/// What the kernel's table lacks.
pub(super) async fn missing(firewall: &Firewall, nft: &Path) -> Result<Vec<String>, FirewallError> {
    let answer = firewall.run(nft, &["-j", "list", "table", "inet", "trueup"], "").await?;
    // The kernel's word for a table that is not there, and not some other program's for a file.
    if !answer.is_success && answer.stderr.starts_with("Error: No such file or directory") {
        return Ok(vec!["the nftables table `inet trueup` does not exist".to_owned()]);
    }
    let text = answer.success()?;
    compare(&text).map_err(|cause| FirewallError::Unreadable { program: "nft".to_owned(), cause })
}

/// Replaces the table.
pub(super) async fn apply(firewall: &Firewall, nft: &Path) -> Result<(), FirewallError> {
    firewall.run(nft, &["-f", "-"], TEXT).await?.success().map(|_empty| ())
}

/// Compares a listing in JSON with what has to be there.
fn compare(listing: &str) -> Result<Vec<String>, String> {
    let listing: Value = serde_json::from_str(listing).map_err(|error| error.to_string())?;
    let objects = listing.get("nftables").and_then(Value::as_array).ok_or("it has no `nftables` array")?;
    let mut missing = Vec::new();
    for (name, expected) in EXPECTED {
        let chain = objects.iter().filter_map(|object| object.get("chain")).find(|chain| text(chain, "name") == name);
        match chain {
            None => missing.push(format!("the chain `{name}` of table `inet trueup` does not exist")),
            Some(chain) if !is_on_hook(chain, name) => {
                missing.push(format!("the chain `{name}` of table `inet trueup` is not on its hook"));
            }
            Some(_) => {
                let rules = objects.iter().filter_map(|object| object.get("rule"));
                let found: Vec<String> = rules.filter(|rule| text(rule, "chain") == name).map(rule_text).collect();
                if found != expected {
                    missing.push(format!("the rules of chain `{name}` of table `inet trueup` were changed"));
                }
            }
        }
    }
    Ok(missing)
}

fn is_on_hook(chain: &Value, name: &str) -> bool {
    text(chain, "type") == "filter" && text(chain, "hook") == name && text(chain, "policy") == "accept"
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A rule as one line: matches in order, then the verdict. Counters are left out; whatever is not
/// of ours stays as JSON, and so never equals an expected rule.
fn rule_text(rule: &Value) -> String {
    let expressions = rule.get("expr").and_then(Value::as_array);
    let parts = expressions.into_iter().flatten().filter(|part| part.get("counter").is_none());
    parts.map(part_text).collect::<Vec<_>>().join(" · ")
}

fn part_text(part: &Value) -> String {
    if let Some(found) = part.get("match") {
        let left = found.get("left").cloned().unwrap_or_default();
        let key = left.pointer("/meta/key").or_else(|| left.pointer("/ct/key")).and_then(Value::as_str);
        let operator = text(found, "op");
        if let Some(key) = key
            && (operator == "==" || operator == "in")
        {
            return format!("{key} {}", values(found.get("right").unwrap_or(&Value::Null)));
        }
    }
    ["accept", "drop"]
        .into_iter()
        .find(|verdict| part.get(*verdict).is_some())
        .map_or_else(|| part.to_string(), str::to_owned)
}

/// One value, a list or a set, which different releases of nft print for the same rule.
fn values(right: &Value) -> String {
    let list = right.get("set").unwrap_or(right);
    let one = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match list.as_array() {
        Some(items) => {
            let mut items: Vec<String> = items.iter().map(one).collect();
            items.sort_unstable();
            items.join(",")
        }
        None => one(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn from_bridge(rest: Vec<Value>) -> Value {
        let mut expr = vec![json!({"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "tu-*"}})];
        expr.extend(rest);
        json!(expr)
    }

    fn listing() -> Vec<Value> {
        let state = |right: Value| json!({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": right}});
        let answers = from_bridge(vec![state(json!(["established", "related"])), json!({"accept": null})]);
        let drops = from_bridge(vec![json!({"counter": {"packets": 3, "bytes": 180}}), json!({"drop": null})]);
        let into = json!([
            {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "tu-*"}},
            state(json!("new")), {"counter": {"packets": 0, "bytes": 0}}, {"drop": null}
        ]);
        let chain = |hook: &str| json!({"chain": {"name": hook, "type": "filter", "hook": hook, "policy": "accept"}});
        let rule = |chain: &str, expr: &Value| json!({"rule": {"chain": chain, "expr": expr}});
        vec![
            json!({"metainfo": {"json_schema_version": 1}}),
            chain("forward"),
            rule("forward", &answers),
            rule("forward", &drops),
            rule("forward", &into),
            chain("input"),
            rule("input", &answers),
            rule("input", &drops),
        ]
    }

    fn judge(objects: &[Value]) -> Vec<String> {
        compare(&json!({"nftables": objects}).to_string()).unwrap()
    }

    #[test]
    fn the_whole_table_lacks_nothing_whatever_its_counters_say() {
        assert_eq!(judge(&listing()), Vec::<String>::new());
    }

    #[test]
    fn any_object_taken_away_is_missed() {
        for left_out in 1..listing().len() {
            let mut objects = listing();
            objects.remove(left_out);
            assert!(!judge(&objects).is_empty(), "without {left_out}");
        }
    }

    #[test]
    fn a_rule_put_in_front_is_noticed() {
        let mut objects = listing();
        objects.insert(2, json!({"rule": {"chain": "forward", "expr": [{"accept": null}]}}));
        assert_eq!(judge(&objects), ["the rules of chain `forward` of table `inet trueup` were changed"]);
    }

    #[test]
    fn a_negated_match_is_not_the_rule() {
        let mut objects = listing();
        *objects[7].pointer_mut("/rule/expr/0/match/op").unwrap() = json!("!=");
        assert_eq!(judge(&objects).len(), 1);
    }

    #[test]
    fn a_set_and_a_list_are_the_same_states() {
        let mut objects = listing();
        *objects[2].pointer_mut("/rule/expr/1/match/right").unwrap() = json!({"set": ["related", "established"]});
        assert_eq!(judge(&objects), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_listing_is_unreadable_and_not_complete() {
        assert!(compare("").is_err());
        assert!(compare("{}").is_err());
    }
}
