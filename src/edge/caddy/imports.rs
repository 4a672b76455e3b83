//! The main Caddyfile's `import` lines, as text: the one thing that `/adapt` cannot be trusted with.
//!
//! `/adapt` and `/load` resolve a relative path against Caddy's working directory, not against the file's own place:
//! the answer is 200, and every site behind the import is gone (measured on 2.6.2, ruling 31).

/// One `import` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// Counted from 1.
    pub(super) line: usize,
    /// What is imported: a path, a glob, or the name of a snippet.
    pub(super) what: String,
    /// How the path is anchored.
    pub(super) kind: ImportKind,
}

/// How an import finds its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportKind {
    /// A snippet of the same file.
    Snippet,
    /// An absolute path.
    Absolute,
    /// Anything else: it depends on Caddy's working directory or environment.
    Relative,
}

/// Finds every `import` line.
pub(super) fn imports(caddyfile: &str) -> Vec<Import> {
    let lines = || caddyfile.lines().map(str::trim).enumerate();
    let snippets: Vec<&str> =
        lines().filter_map(|(_, line)| line.strip_prefix('(')?.split_once(')').map(|(name, _)| name)).collect();
    lines()
        .filter_map(|(index, line)| {
            let rest = line.strip_prefix("import")?;
            if !rest.starts_with([' ', '\t']) {
                return None;
            }
            let what = argument(rest.trim_start());
            let kind = if snippets.contains(&what.as_str()) {
                ImportKind::Snippet
            } else if what.starts_with('/') {
                ImportKind::Absolute
            } else {
                ImportKind::Relative
            };
            Some(Import { line: index + 1, what, kind })
        })
        .collect()
}

/// The first argument, quoted or not.
fn argument(text: &str) -> String {
    for quote in ['"', '`'] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split(quote).next().unwrap_or_default().to_owned();
        }
    }
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_told_from_paths_and_comments_are_skipped() {
        let text = "(common) {\n\tencode gzip\n}\n# import x/*.caddy\na.example.org {\n\timport common arg\n}\nimport \"/etc/caddy/my sites/*.caddy\"\n  import sites/*.caddy # all\nimport {$SITES}/*\nimported\n";
        let found: Vec<(usize, String, ImportKind)> =
            imports(text).into_iter().map(|import| (import.line, import.what, import.kind)).collect();
        let expected = [
            (6, "common", ImportKind::Snippet),
            (8, "/etc/caddy/my sites/*.caddy", ImportKind::Absolute),
            (9, "sites/*.caddy", ImportKind::Relative),
            (10, "{$SITES}/*", ImportKind::Relative),
        ];
        assert_eq!(found, expected.map(|(line, what, kind)| (line, what.to_owned(), kind)));
    }
}
