//! Checks and joins paths of files and devices.

/// Returns the reason why Ignition rejects a path, or `None` if the path is valid.
pub(super) fn path_problem(path: &str) -> Option<String> {
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

/// Joins a path and a relative path, and resolves `.` and `..`.
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

/// Returns the parent directories of an absolute path, without the root directory.
pub(super) fn parent_directories(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at)).filter(|parent| !parent.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_relative_and_unclean_paths() {
        for good in ["/", "/a", "/a/b.c/..d", "/ä b"] {
            assert_eq!(path_problem(good), None, "{good}");
        }
        for bad in ["", "a", "./a", "//", "/a/", "/a//b", "/a/./b", "/..", "/a/../b"] {
            assert!(path_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn joined_paths_are_clean() {
        assert_eq!(join("/a/b", "c"), "/a/b/c");
        assert_eq!(join("/a/b", "../c/."), "/a/c");
        assert_eq!(join("/a", "/x/../../y"), "/y");
        assert_eq!(join("/a", ""), "/a");
    }

    #[test]
    fn parents_exclude_the_root() {
        assert_eq!(parent_directories("/a/b/c").collect::<Vec<_>>(), ["/a/b", "/a"]);
        assert_eq!(parent_directories("/a").count(), 0);
    }
}
