//! Placeholder words for values that differ between runs.

use std::sync::{Arc, LazyLock, Mutex};

use regex::Regex;

/// The placeholder words of one run, and the values that they replace. Clones share the words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Arc<Mutex<Vec<(String, String)>>>);

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<infra-env>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        ("http://192.0.2.1/api/", "<service>/api/"),
        ("http://192.0.2.1/", "<images>/"),
        ("/[0-9a-f]{16}/", "/<revision>/"),
    ]
    .map(|(pattern, word)| (Regex::new(pattern).unwrap(), word))
    .into()
});

/// Values that differ between equal machines, and numbers that can be skipped if changes follow each other quickly.
static UNSTABLE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"<host-\d>", "<host>"),
        ("wwn-0x[0-9a-f]+", "<disk>"),
        (r"\d Agents failed", "<number> Agents failed"),
        (r"Count: \d+", "Count: <number>"),
    ]
    .map(|(pattern, word)| (Regex::new(pattern).unwrap(), word))
    .into()
});

impl Words {
    pub(crate) fn add(&self, text: impl Into<String>, word: impl Into<String>) {
        self.0.lock().unwrap().push((text.into(), word.into()));
    }

    /// Returns the value that a word stands for, or `word` itself.
    pub(crate) fn text_of(&self, word: &str) -> String {
        let words = self.0.lock().unwrap();
        let text = words.iter().find(|(_, it)| it == word).map(|(text, _)| text.clone());
        text.unwrap_or_else(|| word.to_owned())
    }

    /// Replaces all words with their values.
    pub(crate) fn restore(&self, text: &str) -> String {
        let words = self.0.lock().unwrap();
        words.iter().fold(text.to_owned(), |text, (original, word)| text.replace(word, original))
    }

    /// Replaces all values with their words.
    pub(crate) fn replace(&self, text: &str) -> String {
        let words = self.0.lock().unwrap();
        let text = words.iter().fold(text.to_owned(), |text, (original, word)| text.replace(original, word));
        replace_all(&PATTERNS, text)
    }
}

/// Returns the line `field: value` for the comparison.
pub(crate) fn line(field: &str, value: &str) -> String {
    replace_all(&UNSTABLE, format!("{field}: {value}"))
}

fn replace_all(patterns: &[(Regex, &str)], text: String) -> String {
    patterns.iter().fold(text, |text, (pattern, word)| pattern.replace_all(&text, *word).into_owned())
}
