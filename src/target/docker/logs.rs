//! The last lines that a container wrote.

use bollard::query_parameters::LogsOptions;
use futures_util::StreamExt as _;

use super::DockerTarget;
use super::engine::{READ_DEADLINE, optional};
use super::observe;
use crate::model::{Slot, TargetName};
use crate::target::TargetError;

/// Bytes read from the engine: a line can be as long as a container likes.
const READ_LIMIT_BYTES: usize = 256 * 1024;
/// Characters of one line that are kept.
const LINE_LIMIT_CHARS: usize = 2_000;

/// The last lines of both streams, oldest first; none when there is no container of ours.
pub(super) async fn tail(
    docker: &DockerTarget,
    target: &TargetName,
    slot: Slot,
    lines: u32,
) -> Result<Vec<String>, TargetError> {
    let state = observe::seat(docker, target, slot).await?;
    let Some(live) = state.ours() else {
        return Ok(Vec::new());
    };
    let client = docker.engine.client().await?;
    let options = LogsOptions { stdout: true, stderr: true, tail: lines.to_string(), ..LogsOptions::default() };
    let mut stream = client.logs(&live.id, Some(options));
    let read = async {
        let mut bytes = Vec::new();
        while let Some(part) = stream.next().await {
            bytes.extend_from_slice(part?.as_ref());
            if bytes.len() > READ_LIMIT_BYTES {
                break;
            }
        }
        Ok(bytes)
    };
    let what = format!("show the log of container {}", live.spec.name);
    let bytes = optional(docker.engine.bounded(&what, READ_DEADLINE, read).await)?.unwrap_or_default();
    Ok(last_lines(&bytes, usize::try_from(lines).unwrap_or(usize::MAX)))
}

/// The last `lines` lines, without control characters (a log could otherwise steer the terminal
/// that shows it), each cut at a length for people.
fn last_lines(bytes: &[u8], lines: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    all.into_iter().skip(from).map(clean).collect()
}

fn clean(line: &str) -> String {
    let spaced = line.chars().map(|c| if c == '\t' { ' ' } else { c });
    spaced.filter(|c| !c.is_control()).take(LINE_LIMIT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_come_oldest_first_without_control_characters() {
        let lines = last_lines(b"one\ntwo\t2\r\n\x1b[31mthree\x07\n", 2);
        assert_eq!(lines, ["two 2", "[31mthree"]);
    }

    #[test]
    fn bytes_that_are_no_text_and_lines_without_end_are_bounded() {
        let mut bytes = vec![0xff, b'\n'];
        bytes.extend(std::iter::repeat_n(b'x', 10_000));
        let lines = last_lines(&bytes, 5);
        assert_eq!(lines[0], "\u{fffd}");
        assert_eq!(lines[1].len(), LINE_LIMIT_CHARS);
    }
}
