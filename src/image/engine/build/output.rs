//! What a build prints, line by line: shown as it comes, and the last lines kept as evidence.

use std::collections::VecDeque;

use bollard::models::BuildInfo;

use crate::image::{ImageError, Progress};

/// Output lines that stay as evidence.
const EVIDENCE_LINES: usize = 40;
/// Characters of one output line that are kept.
const LINE_LIMIT_CHARS: usize = 500;

/// The output of a build, line by line.
pub(super) struct Output<'a> {
    progress: Progress<'a>,
    partial: String,
    last: VecDeque<String>,
}

impl<'a> Output<'a> {
    pub(super) fn new(progress: Progress<'a>) -> Self {
        Self { progress, partial: String::new(), last: VecDeque::new() }
    }

    /// One message of the builder: a piece of a line, or several.
    pub(super) fn take(&mut self, info: BuildInfo) {
        let text = info.stream.or(info.status.map(|status| format!("{status}\n")));
        self.partial.push_str(&text.unwrap_or_default());
        while let Some((line, rest)) = self.partial.split_once('\n') {
            let (line, rest) = (clean(line), rest.to_owned());
            self.partial = rest;
            self.line(line);
        }
        // Output without line ends is cut, so that it stays bounded.
        if self.partial.chars().count() > LINE_LIMIT_CHARS {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        let rest = clean(&std::mem::take(&mut self.partial));
        self.line(rest);
    }

    /// A line of our own between those of the builder.
    pub(super) fn note(&mut self, text: &str) {
        self.flush();
        self.line(clean(text));
    }

    fn line(&mut self, line: String) {
        if line.trim().is_empty() {
            return;
        }
        (self.progress)(&line);
        if self.last.len() == EVIDENCE_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

fn clean(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(LINE_LIMIT_CHARS).collect()
}

/// The error with the last lines as its evidence.
pub(super) fn with_output(mut error: ImageError, output: &Output<'_>) -> ImageError {
    if !output.last.is_empty() {
        let lines: Vec<&str> = output.last.iter().map(String::as_str).collect();
        error.reason = error.reason.with_evidence(lines.join("\n"));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_line_by_line_and_the_last_lines_stay() {
        let seen = std::sync::Mutex::new(Vec::new());
        let progress = |line: &str| seen.lock().unwrap().push(line.to_owned());
        let mut output = Output::new(&progress);
        let part = |text: &str| BuildInfo { stream: Some(text.to_owned()), ..BuildInfo::default() };
        output.take(part("Step 1/2 : FR"));
        output.take(part("OM scratch\n\n ---> \x1b[1mdone"));
        output.flush();
        assert_eq!(*seen.lock().unwrap(), ["Step 1/2 : FROM scratch", " ---> [1mdone"]);
        for number in 0..100 {
            output.take(part(&format!("line {number}\n")));
        }
        assert_eq!(output.last.len(), EVIDENCE_LINES);
        assert_eq!(output.last.back().map(String::as_str), Some("line 99"));
    }
}
