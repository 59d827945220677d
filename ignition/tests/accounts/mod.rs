//! Reads and prepares the users and groups of a root file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A user, assembled from all account files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) primary_group: u32,
    pub(crate) comment: String,
    pub(crate) home: String,
    pub(crate) shell: String,
    pub(crate) hash: String,
    pub(crate) groups: BTreeSet<String>,
    /// The authorized keys that the engine has written, if any.
    pub(crate) keys: Option<Vec<String>>,
}

/// A group. Its members are in [`User::groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) gid: u32,
    pub(crate) hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accounts {
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) groups: BTreeMap<String, Group>,
}

/// The users in every prepared root: name, number, home.
const USERS: [(&str, u32, &str); 4] = [
    ("root", 0, "/root"),
    ("core", 1000, "/var/home/core"),
    ("guest", 1001, "/home/guest"),
    ("other", 1002, "/home/other"),
];

/// The groups in every prepared root, except the users' own groups: name, number, member.
const GROUPS: [(&str, u32, &str); 4] =
    [("sudo", 27, ""), ("wheel", 10, "core"), ("adm", 4, "core,guest"), ("old", 900, "")];

/// Writes users, groups and homes to a root directory. This is enough for `useradd --root`, which changes its root and
/// loads nothing from the new root.
pub(crate) fn prepare(root: &Path) {
    let own = USERS.iter().map(|(name, id, _)| (*name, *id, ""));
    let groups: Vec<(&str, u32, &str)> = own.chain(GROUPS).collect();
    let lines = |line: &dyn Fn(&(&str, u32, &str)) -> String, of: &[(&str, u32, &str)]| -> String {
        of.iter().map(line).collect()
    };
    let files = [
        (
            "passwd",
            lines(&|(name, id, home)| format!("{name}:x:{id}:{id}:a {name}:{home}:/bin/bash\n"), &USERS),
        ),
        ("shadow", lines(&|(name, ..)| format!("{name}:*:19000:0:99999:7:::\n"), &USERS)),
        ("group", lines(&|(name, id, members)| format!("{name}:x:{id}:{members}\n"), &groups)),
        ("gshadow", lines(&|(name, _, members)| format!("{name}:!::{members}\n"), &groups)),
        // The usual setting: a new user gets its own group, and the group is removed together with the user.
        ("login.defs", "USERGROUPS_ENAB yes\n".to_owned()),
    ];
    for (name, text) in files {
        fs::write(root.join("etc").join(name), text).unwrap();
    }
    for (_, id, home) in USERS {
        let home = below(root, home);
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("letter"), "x").unwrap();
        chown(&home, Some(id), Some(id)).unwrap();
    }
    for folder in ["srv", "opt"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    // The engine writes keys as the user, so the user must be able to reach the folder.
    let scratch = root.parent().unwrap();
    fs::set_permissions(scratch, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Accounts {
    pub(crate) fn read(root: &Path) -> Self {
        let table = |name: &str| -> BTreeMap<String, Vec<String>> {
            let text = fs::read_to_string(root.join("etc").join(name)).unwrap();
            let fields = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
            fields.map(|fields| (fields[0].clone(), fields)).collect()
        };
        let [users, hashes, groups, group_hashes] = ["passwd", "shadow", "group", "gshadow"].map(table);
        let groups_of = |user: &str| -> BTreeSet<String> {
            let lists = |fields: &[String]| fields[3].split(',').any(|member| member == user);
            groups.iter().filter(|(_, fields)| lists(fields)).map(|(name, _)| name.clone()).collect()
        };
        let user = |(name, fields): (String, Vec<String>)| {
            let user = User {
                uid: fields[2].parse().unwrap(),
                primary_group: fields[3].parse().unwrap(),
                comment: fields[4].clone(),
                home: fields[5].clone(),
                shell: fields[6].clone(),
                hash: hashes[&name][1].clone(),
                groups: groups_of(&name),
                keys: keys(root, &fields[5], fields[2].parse().unwrap()),
            };
            (name, user)
        };
        let group = |(name, fields): (&String, &Vec<String>)| {
            let hash = group_hashes[name][1].clone();
            (name.clone(), Group { gid: fields[2].parse().unwrap(), hash })
        };
        Self { groups: groups.iter().map(group).collect(), users: users.into_iter().map(user).collect() }
    }

    /// Asserts that `self` is the result of applying the users and groups of a config to `before`.
    pub(crate) fn assert_result_of(&self, before: &Self, passwd: &Value, root: &Path) {
        let list = |key: &str| passwd[key].as_array().cloned().unwrap_or_default();
        let mut expected = before.clone();
        for group in list("groups") {
            expected.apply_group(&group, self);
        }
        for user in list("users") {
            expected.apply_user(&user, self);
            if user["shouldExist"] == false {
                let home = before.users.get(name(&user)).map(|before| below(root, &before.home));
                assert!(home.is_none_or(|home| !home.exists()), "{user}");
            }
        }
        assert_eq!(*self, expected, "{passwd}");
    }

    /// Returns the names of users that are new or different, and the names of removed users.
    pub(crate) fn changes_since(&self, before: &Self) -> [BTreeSet<String>; 2] {
        let changed = self.users.iter().filter(|(name, user)| before.users.get(*name) != Some(*user));
        let removed = before.users.keys().filter(|name| !self.users.contains_key(*name));
        [changed.map(|(name, _)| name.clone()).collect(), removed.cloned().collect()]
    }

    /// Applies a group of a config. If the config does not specify the number of a new group, the number comes from
    /// `after`.
    fn apply_group(&mut self, group: &Value, after: &Self) {
        let name = name(group);
        if group["shouldExist"] == false {
            self.groups.remove(name);
            self.users.values_mut().for_each(|user| {
                user.groups.remove(name);
            });
            return;
        }
        let default = || Group { gid: after.groups[name].gid, hash: "*".to_owned() };
        let expected = self.groups.entry(name.to_owned()).or_insert_with(default);
        set(&mut expected.hash, hash(group));
        set(&mut expected.gid, id(group, "gid"));
    }

    fn apply_user(&mut self, user: &Value, after: &Self) {
        let name = name(user);
        if user["shouldExist"] == false {
            self.users.remove(name);
            self.groups.remove(name);
            return;
        }
        let default = || {
            let after = &after.users[name];
            let hash = "*".to_owned();
            User {
                primary_group: after.primary_group,
                uid: after.uid,
                shell: after.shell.clone(),
                comment: String::new(),
                home: format!("/home/{name}"),
                hash,
                groups: BTreeSet::new(),
                keys: None,
            }
        };
        let is_new = !self.users.contains_key(name);
        let own_group = is_new && text(user, "primaryGroup").is_none() && user["noUserGroup"] != true;
        if own_group {
            let gid = after.users[name].primary_group;
            self.groups.insert(name.to_owned(), Group { gid, hash: "!".to_owned() });
        }
        let expected = self.users.entry(name.to_owned()).or_insert_with(default);
        set(&mut expected.hash, hash(user));
        set(&mut expected.uid, id(user, "uid"));
        set(&mut expected.comment, text(user, "gecos"));
        set(&mut expected.home, text(user, "homeDir"));
        set(&mut expected.shell, text(user, "shell"));
        set(&mut expected.primary_group, text(user, "primaryGroup").map(|group| self.groups[&group].gid));
        set(&mut expected.groups, texts(user, "groups").map(|groups| groups.into_iter().collect()));
        set(&mut expected.keys, texts(user, "sshAuthorizedKeys").map(Some));
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn name(account: &Value) -> &str {
    account["name"].as_str().unwrap()
}

/// Returns a non-empty text. The engine treats an empty text as absent.
fn text(account: &Value, key: &str) -> Option<String> {
    account[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(account: &Value, key: &str) -> Option<Vec<String>> {
    let list = account[key].as_array().filter(|list| !list.is_empty())?;
    Some(list.iter().map(|text| text.as_str().unwrap().to_owned()).collect())
}

fn id(account: &Value, key: &str) -> Option<u32> {
    account[key].as_u64().map(|id| u32::try_from(id).unwrap())
}

/// Returns the password hash. An empty hash locks the account instead of opening it.
fn hash(account: &Value) -> Option<String> {
    let hash = account["passwordHash"].as_str()?;
    Some(if hash.is_empty() { "*" } else { hash }.to_owned())
}

/// Returns the keys that the engine has written for a user. Only the user may read the file.
fn keys(root: &Path, home: &str, uid: u32) -> Option<Vec<String>> {
    let folder = below(root, home).join(".ssh");
    let path = folder.join("authorized_keys.d/ignition");
    let text = fs::read_to_string(&path).ok()?;
    for (path, mode) in [(folder, 0o700), (path, 0o600)] {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(
            (metadata.uid(), metadata.permissions().mode() & 0o7777),
            (uid, mode),
            "{}",
            path.display()
        );
    }
    Some(text.lines().map(str::to_owned).collect())
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
