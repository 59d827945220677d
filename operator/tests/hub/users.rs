//! The users of the hub that have static tokens.

use std::fmt::Write;

/// The user whose requests mark positions in the audit log.
pub(super) const AUDIT_MARKER: &str = "audit-marker";
/// Number of users `user-0`, `user-1`, and so on, for tests that must not share a user.
pub(super) const NUMBERED_USERS: usize = 200;

/// Returns the token file for the API server. It has a line `token,name,uid[,groups]` for each user.
pub(super) fn token_file() -> String {
    let mut lines = String::new();
    for user in ["admin", "system:kube-controller-manager", "hub-probe"] {
        writeln!(lines, "{},{user},{user},\"system:masters\"", token_of(user)).unwrap();
    }
    let numbered = (0..NUMBERED_USERS).map(|number| format!("user-{number}"));
    for user in ["assisted", AUDIT_MARKER].map(str::to_owned).into_iter().chain(numbered) {
        writeln!(lines, "{},{user},{user}", token_of(&user)).unwrap();
    }
    lines
}

pub(super) fn token_of(user: &str) -> String {
    format!("token-of-{}", user.replace(':', "-"))
}
