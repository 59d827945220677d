//! Paths of files and devices.

/// Why a path is none that Ignition takes.
pub(super) fn problem(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some("the path is empty".to_owned());
    }
    let Some(relative) = path.strip_prefix('/') else {
        return Some(format!("the path {path:?} is not absolute"));
    };
    let is_clean = |part: &str| !matches!(part, "" | "." | "..");
    let all_clean = relative.is_empty() || relative.split('/').all(is_clean);
    (!all_clean).then(|| format!("the path {path:?} has \"//\", \".\", \"..\" or \"/\" at its end"))
}

/// A path with a relative one behind it, without `.` and `..`.
pub(super) fn join(base: &str, path: &str) -> String {
    let parts = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut clean: Vec<&str> = Vec::new();
    for part in parts.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    format!("/{}", clean.join("/"))
}

/// The folders above an absolute path, the root left out.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at)).filter(|parent| !parent.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clean_absolute_paths_pass() {
        for good in ["/", "/a", "/a/b.c/..d", "/ä b"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in ["", "a", "./a", "//", "/a/", "/a//b", "/a/./b", "/..", "/a/../b"] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn joining_cleans() {
        assert_eq!(join("/a/b", "c"), "/a/b/c");
        assert_eq!(join("/a/b", "../c/."), "/a/c");
        assert_eq!(join("/a", "/x/../../y"), "/y");
        assert_eq!(join("/a", ""), "/a");
    }

    #[test]
    fn parents_end_below_the_root() {
        assert_eq!(parents("/a/b/c").collect::<Vec<_>>(), ["/a/b", "/a"]);
        assert_eq!(parents("/a").count(), 0);
    }
}
