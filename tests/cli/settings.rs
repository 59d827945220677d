//! Tests misspelt, empty and contradictory settings of `kindling serve`.

use std::collections::BTreeSet;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use Empty::{Refused, Unset};

use crate::serve::ServeProcess;
use crate::support::{KINDLING, ProgramRun, RunOutput, Scratch, require_tool};

/// User id for the test of thread limits. No other process has this id.
const THREAD_TEST_USER: u32 = 64_123;

/// The meaning of an empty variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// The setting has its default.
    Unset,
    /// An error, because the setting decides access, encryption or integrity.
    Refused,
}

/// A value that prevents the start, with a phrase of its error.
type WrongValue = (&'static str, &'static str);

/// All environment variables of `serve`, in alphabetical order.
const SETTINGS: &[(&str, Empty, &[WrongValue])] = &[
    ("AGENT_DOCKER_IMAGE", Unset, &[]),
    ("AGENT_INVENTORY_DISK_MIN_SIZE", Unset, &[("1G", "invalid digit")]),
    ("AGENT_INVENTORY_MAX_SIZE", Unset, &[("-1", "invalid digit")]),
    (
        "ALLOWED_DOMAINS",
        Refused,
        &[
            ("https://*.*", "expected an origin"),
            ("https://a,,https://b", "expected an origin"),
            ("ui.example.com", "expected an origin"),
        ],
    ),
    ("ASSISTED_SERVICE_API_TRUSTED_CA_FILE", Refused, &[]),
    ("ASSISTED_SERVICE_HOST", Refused, &[("http://assisted", "HOST[:PORT]")]),
    ("ASSISTED_SERVICE_SCHEME", Refused, &[("htps", "[possible values: http, https]")]),
    ("AUTH_TYPE", Refused, &[("loacl", "[possible values: none, local]"), ("rhsso", "is not supported")]),
    ("CHECK_CLUSTER_VERSION", Unset, &[("yes", "expected true or false")]),
    ("CLUSTER_NETWORK_CIDR", Unset, &[("10.128.0.0", "expected a network")]),
    ("CLUSTER_NETWORK_CIDR_IPV6", Unset, &[("10.0.0.0/8", "expected a network")]),
    ("CLUSTER_NETWORK_HOST_PREFIX", Unset, &[("0", "is not in 1..=32")]),
    ("CLUSTER_NETWORK_HOST_PREFIX_IPV6", Unset, &[("129", "is not in 1..=128")]),
    ("CONTROLLER_IMAGE", Unset, &[]),
    ("DB_HOST", Unset, &[]),
    ("DB_NAME", Unset, &[("installer", "--db-host <HOST>")]),
    ("DB_PASS", Unset, &[("secret", "--db-user <NAME>")]),
    ("DB_PORT", Unset, &[("x", "invalid digit")]),
    ("DB_SSLMODE", Refused, &[("requir", "[possible values: disable,"), ("require", "--db-host <HOST>")]),
    ("DB_SSLROOTCERT", Refused, &[("ca.pem", "--db-sslmode <MODE>")]),
    ("DB_USER", Unset, &[("admin", "--db-host <HOST>")]),
    ("DELETED_UNREGISTERED_AFTER", Unset, &[("72", "expected a duration")]),
    ("DISABLED_CLUSTER_VALIDATIONS", Unset, &[("connected", "unknown validation id")]),
    (
        "DISABLED_HOST_VALIDATIONS",
        Unset,
        &[("connected,", "empty validation id"), ("dns", "unknown validation id")],
    ),
    ("DISABLED_STEPS", Unset, &[]),
    ("EDGE_WORKERS_PRODUCT_NAMES", Unset, &[]),
    ("ENABLE_REJECT_UNKNOWN_FIELDS", Unset, &[("yes", "expected true or false")]),
    ("ENABLE_UPGRADE_AGENT", Unset, &[("yes", "expected true or false")]),
    ("ENABLE_AUTO_ASSIGN", Unset, &[("yes", "expected true or false")]),
    (
        "ENABLE_KUBE_API",
        Unset,
        &[("yes", "expected true or false"), ("true", "cannot find the Kubernetes API")],
    ),
    ("HOST_MAX_DISCONNECTION_TIME", Unset, &[("3", "expected a duration")]),
    ("HOST_MONITOR_INTERVAL", Unset, &[("fast", "expected a duration")]),
    ("HTTPS_CERT_FILE", Refused, &[("cert.pem", "--https-key-file <FILE>")]),
    ("HTTPS_KEY_FILE", Refused, &[("key.pem", "--https-cert-file <FILE>")]),
    ("HTTP_LISTEN_PORT", Unset, &[("http", "invalid digit")]),
    (
        "HW_VALIDATOR_REQUIREMENTS",
        Unset,
        &[
            ("[]", "need an entry for version"),
            ("[{}]", "has no \"version\""),
            ("{", "not a valid JSON list"),
        ],
    ),
    ("IGNORED_OPENSHIFT_VERSIONS", Unset, &[("4.18", "is not a JSON list")]),
    ("IMAGE_SERVICE_BASE_URL", Unset, &[("images", "IMAGE_SERVICE_BASE_URL \"images\"")]),
    ("INFRA_ENV_ID", Unset, &[("mine", "expected a UUID")]),
    ("INSECURE_SKIP_VERIFY", Refused, &[("yes", "expected true or false")]),
    ("INSTALLER_IMAGE", Unset, &[]),
    ("ISO_IMAGE_TYPE", Unset, &[("full", "expected full-iso or minimal-iso")]),
    (
        "KINDLING_ADDED_IMAGE_SERVERS",
        Refused,
        &[
            ("mirror,", "expected the host of a URL"),
            ("*", "expected the host of a URL"),
            ("*.example.com", "expected the host of a URL"),
            ("mirror:8080", "expected the host of a URL"),
            ("https://mirror", "expected the host of a URL"),
            ("::1", "expected the host of a URL"),
        ],
    ),
    (
        "KINDLING_ALLOWED_HOSTS",
        Refused,
        &[("a:80", "expected a host without a port"), ("a,,b", "expected a host")],
    ),
    ("KINDLING_ALLOW_OPEN_ACCESS", Refused, &[("flase", "[possible values: true, false]")]),
    ("KINDLING_BASE_IMAGE_WAIT", Unset, &[("soon", "expected a duration")]),
    ("KINDLING_CONFIG", Refused, &[("missing.toml", "missing.toml: No such file")]),
    ("KINDLING_COPY_IMAGES", Unset, &[("yes", "[possible values: true, false]")]),
    ("KINDLING_DATABASE_OUTAGE_GRACE", Unset, &[("10", "expected a duration")]),
    (
        "KINDLING_DATABASE_URL",
        Refused,
        &[
            (
                "postgres://127.0.0.1:1/x?ssl_mode=require",
                "unknown parameter `ssl_mode`; did you mean `sslmode`?",
            ),
            (
                "postgres://127.0.0.1:1/x?passwort=secret",
                "unknown parameter `passwort`; did you mean `password`?",
            ),
            ("postgres://127.0.0.1:1/x?sslmode=secret", "sslmode must be one of disable,"),
            ("postgres://127.0.0.1:1/x?secret", "its parameter 1 is unknown"),
            ("postgres://me:a?secret@127.0.0.1:1/x", "its parameter 1 is unknown"),
            ("postgres://127.0.0.1:1/x?sslmode=require&sslmode=disable", "`sslmode` is set twice"),
            ("postgres://127.0.0.1:1/x?sslmode=verify-ca", "sslmode=verify-ca accepts any server"),
            ("sqlite:x?password=secret", "unsupported database URL"),
            ("mysql://me:secret@db/x", "use `sqlite:` or `postgres:`"),
        ],
    ),
    ("KINDLING_DATA_DIR", Unset, &[("s3://bucket", "not a URL"), ("s3//bucket", "not a URL")]),
    ("KINDLING_DRAIN_TIME", Unset, &[("1x", "expected a duration")]),
    ("KINDLING_EC_PRIVATE_KEY_FILE", Refused, &[("key.pem", "but no authentication policy")]),
    ("KINDLING_EC_PUBLIC_KEY_FILE", Refused, &[("key.pem", "but no authentication policy")]),
    ("KINDLING_FAST_PATH", Unset, &[("of", "[possible values: on, off]")]),
    ("KINDLING_FETCH_IMAGES", Unset, &[("now", "[possible values: on-first-use, at-start]")]),
    (
        "KINDLING_FILES",
        Unset,
        &[
            ("s3//bucket/prefix", "expected a directory, or s3://BUCKET/PREFIX"),
            ("s3:/bucket", "expected a directory, or s3://BUCKET/PREFIX"),
            ("s3://", "expected a directory, or s3://BUCKET/PREFIX"),
            ("ftp://files", "expected a directory, or s3://BUCKET/PREFIX"),
        ],
    ),
    ("KINDLING_HANDSHAKE_TIMEOUT", Unset, &[("0", "greater than 0")]),
    ("KINDLING_HEAD_TIMEOUT", Unset, &[("0", "greater than 0")]),
    ("KINDLING_IDLE_TIMEOUT", Unset, &[("0", "greater than 0")]),
    ("KINDLING_IMAGES_DIR", Unset, &[("s3://bucket", "not a URL"), ("s3//bucket", "not a URL")]),
    ("KINDLING_INVENTORY_URL", Refused, &[("assisted", "KINDLING_INVENTORY_URL")]),
    ("KINDLING_KUBE_NAMESPACES", Refused, &[("a,,b", "expected the name of a namespace")]),
    ("KINDLING_KUBE_REQUESTS_PER_SECOND", Unset, &[("0", "is not in 1..=10000")]),
    (
        "KINDLING_KUBE_WEBHOOKS_CA_FILE",
        Refused,
        &[("ca.pem", "(KINDLING_KUBE_WEBHOOKS_CA_FILE) has no effect")],
    ),
    (
        "KINDLING_KUBE_WEBHOOKS_CERT_FILE",
        Refused,
        &[("cert.pem", "(KINDLING_KUBE_WEBHOOKS_CERT_FILE) has no effect")],
    ),
    (
        "KINDLING_KUBE_WEBHOOKS_KEY_FILE",
        Refused,
        &[("key.pem", "(KINDLING_KUBE_WEBHOOKS_KEY_FILE) has no effect")],
    ),
    (
        "KINDLING_KUBE_WEBHOOKS_LISTEN",
        Unset,
        &[
            ("9443", "expected an IP address and a port"),
            ("127.0.0.1:0", "needs --kube-api (ENABLE_KUBE_API=true)"),
        ],
    ),
    (
        "KINDLING_KUBE_WEBHOOKS_SERVICE",
        Unset,
        &[
            ("a.b", "expected the name of a Service"),
            ("kindling", "has no effect without --kube-webhooks-listen"),
        ],
    ),
    (
        "KINDLING_KUBE_WEBHOOKS_URL",
        Unset,
        &[
            ("http://hook", "expected https://HOST[:PORT]"),
            ("https://hook", "has no effect without --kube-webhooks-listen"),
        ],
    ),
    ("KINDLING_LISTEN", Unset, &[("localhost", "expected an IP address and a port")]),
    (
        "KINDLING_LISTEN_TLS",
        Refused,
        &[("8443", "expected an IP address and a port"), ("127.0.0.1:0", "TLS needs a certificate")],
    ),
    ("KINDLING_MAX_CLIENT_CONNECTIONS", Unset, &[("0", "is not in 1..")]),
    ("KINDLING_MAX_CONNECTIONS", Unset, &[("1", "is not in 64..")]),
    ("KINDLING_MAX_INFRA_ENV_BYTES", Unset, &[("1", "is not in")]),
    ("KINDLING_MAX_INFRA_ENV_HOSTS", Unset, &[("0", "is not in")]),
    ("KINDLING_MAX_REPORT_BYTES", Unset, &[("1", "is not in")]),
    ("KINDLING_OS_IMAGES_FILE", Unset, &[("missing.json", "reading missing.json")]),
    ("KINDLING_PRUNE_IMAGES", Unset, &[("yes", "[possible values: true, false]")]),
    ("KINDLING_RELEASE_IMAGES_FILE", Unset, &[("missing.json", "reading missing.json")]),
    ("KINDLING_STALL_TIMEOUT", Unset, &[("0", "greater than 0")]),
    ("KUBECONFIG", Unset, &[]),
    ("LISTEN_PORT", Unset, &[("65536", "not in 0..=65535")]),
    ("LIVENESS_VALIDATION_TIMEOUT", Unset, &[("5", "expected a duration")]),
    ("LOG_FORMAT", Unset, &[("jason", "[possible values: text, json]")]),
    ("LOG_LEVEL", Unset, &[("inof", "expected error, warn, info")]),
    ("MAX_CONCURRENT_REQUESTS", Unset, &[("0", "is not in 1..")]),
    ("MIN_VERSION_FOR_NMSTATE_SERVICE", Unset, &[("new", "expected a version")]),
    ("NAMESPACE", Unset, &[]),
    ("NETWORK_DISCOVERY_DELAY_SECONDS", Unset, &[("1m", "invalid digit")]),
    ("NTP_DEFAULT_SERVER", Unset, &[]),
    (
        "OS_IMAGES",
        Unset,
        &[
            (
                r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "u", "version": "1", "sha265": ""}]"#,
                "OS_IMAGES: [0].sha265 is not a known key (did you mean sha256?); known keys are ",
            ),
            (
                r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "u", "version": "1", "sha256": ""}]"#,
                "OS_IMAGES: [0].sha256 is empty",
            ),
        ],
    ),
    ("OS_IMAGES_REQUEST_HEADERS", Unset, &[("Authorization: secret", "not a JSON object of strings")]),
    ("OS_IMAGES_REQUEST_QUERY_PARAMS", Unset, &[("token=secret", "not a JSON object of strings")]),
    ("OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", Refused, &[("missing.pem", "missing.pem")]),
    ("PUBLIC_CONTAINER_REGISTRIES", Unset, &[]),
    ("RELEASE_IMAGES", Unset, &[("{}", "RELEASE_IMAGES")]),
    ("RELEASE_TAG", Unset, &[]),
    ("SELF_VERSION", Unset, &[]),
    ("SERVICE_BASE_URL", Unset, &[("kindling", "SERVICE_BASE_URL \"kindling\"")]),
    ("SERVICE_CA_CERT_PATH", Refused, &[("missing.pem", "SERVICE_CA_CERT_PATH")]),
    ("SERVICE_NETWORK_CIDR", Unset, &[("x", "expected a network")]),
    ("SERVICE_NETWORK_CIDR_IPV6", Unset, &[("x", "expected a network")]),
    ("SKIP_CERT_VERIFICATION", Refused, &[("no", "expected true or false")]),
    (
        "TLS_CIPHER_SUITES",
        Refused,
        &[("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265", "expected a name of IANA's registry")],
    ),
    ("TLS_MIN_VERSION", Refused, &[("1.3", "expected VersionTLS12 or VersionTLS13")]),
];

/// Runs `serve`, which must refuse to start, with environment variables.
#[track_caller]
fn refused(scratch: &Scratch, variables: &[(&str, &str)]) -> RunOutput {
    let listen: &[&str] = if variables.iter().any(|(name, _)| *name == "KINDLING_LISTEN") {
        &[]
    } else {
        &["--listen", "127.0.0.1:0"]
    };
    let run = scratch.command(["serve"].iter().chain(listen));
    let output = variables.iter().fold(run, |run, (name, value)| run.env(name, value)).run();
    assert!(!output.status.success(), "{variables:?} are accepted");
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert!(output.stdout.is_empty());
    output
}

#[track_caller]
fn expect_refused(scratch: &Scratch, variables: &[(&str, &str)], phrases: &[&str]) {
    let RunOutput { stderr, .. } = refused(scratch, variables);
    for phrase in phrases {
        assert!(stderr.contains(phrase), "no {phrase:?} for {variables:?} in: {stderr}");
    }
}

#[test]
fn every_variable_of_serve_is_tested() {
    let help = Scratch::new().run_kindling("serve --help").expect_text();
    let variables = help.split("[env: ").skip(1).map(|rest| rest.split([']', '=']).next().unwrap());
    let variables: BTreeSet<&str> = variables.collect();
    assert_eq!(variables, SETTINGS.iter().map(|(name, ..)| *name).collect());
}

#[test]
fn rejects_wrong_values_of_every_variable() {
    let scratch = Scratch::new();
    for (name, _, values) in SETTINGS {
        for (value, phrase) in *values {
            expect_refused(&scratch, &[(name, value)], &[phrase]);
        }
    }
}

#[test]
fn rejects_empty_variables_of_access_encryption_and_integrity() {
    let scratch = Scratch::new();
    let others =
        [("EC_PRIVATE_KEY_PEM", Refused), ("EC_PUBLIC_KEY_PEM", Refused), ("HTTPS_CA_FILE", Refused)];
    let all = SETTINGS.iter().map(|(name, empty, _)| (*name, *empty)).chain(others);
    for (name, _) in all.filter(|(_, empty)| *empty == Refused) {
        expect_refused(&scratch, &[(name, "")], &[name]);
        // The variable with the prefix has precedence, whatever the value of the variable without the prefix.
        let prefixed = format!("MYAPP_{name}");
        expect_refused(&scratch, &[(&prefixed, "")], &[&prefixed]);
    }
    assert_eq!(scratch.names(), Vec::<String>::new());
}

#[test]
fn other_empty_variables_are_not_set() {
    let scratch = Scratch::new();
    let unset = SETTINGS.iter().filter(|(_, empty, _)| *empty == Unset);
    let empty: Vec<_> = unset.map(|(name, ..)| (*name, "")).collect();
    assert!(empty.len() > 50);
    ServeProcess::start(&scratch, &empty, &[]).stop();
    // An option overrides its variable even if the variable is empty.
    ServeProcess::start(&scratch, &[("AUTH_TYPE", "")], &["--auth-type", "none"]).stop();
}

#[test]
fn rejects_contradictory_settings() {
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    let printed = scratch.run_kindling("auth keys --env").expect_text();
    let private = printed.lines().find_map(|line| line.strip_prefix("EC_PRIVATE_KEY_PEM=")).unwrap();
    let policy = "is set, but no authentication policy; use `--auth-type local` (AUTH_TYPE=local)";
    for (variables, phrase) in [
        (&[("EC_PRIVATE_KEY_PEM", private)][..], policy),
        (&[("EC_PUBLIC_KEY_PEM", "x")], policy),
        (&[("KINDLING_EC_PRIVATE_KEY_FILE", "keys/ec-private-key.pem")], policy),
        (&[("AUTH_TYPE", "local")], "no private key"),
        (&[("KINDLING_DATABASE_URL", "sqlite:x"), ("DB_HOST", "db")], "cannot be used with"),
        (&[("DB_HOST", "db"), ("DB_PASS", "secret")], "--db-user <NAME>"),
        (&[("DB_HOST", "db"), ("DB_SSLMODE", "verify-ca")], "set DB_SSLROOTCERT"),
        (
            &[
                ("DB_HOST", "127.0.0.1"),
                ("DB_SSLMODE", "require"),
                ("DB_SSLROOTCERT", "keys/ec-public-key.pem"),
            ],
            "sslrootcert has an effect only with sslmode=verify-ca",
        ),
        (
            &[("KINDLING_DATABASE_URL", "postgres://127.0.0.1:1/x"), ("PGSSLMODE", "requir")],
            "PGSSLMODE must be one of",
        ),
        (
            &[("KINDLING_DATABASE_URL", "postgres://127.0.0.1:1/x"), ("PGSSLROOTCERT", "")],
            "PGSSLROOTCERT is empty",
        ),
        (&[("OS_IMAGES", "[]"), ("KINDLING_OS_IMAGES_FILE", "x")], "cannot be used with"),
        (
            &[("ENABLE_KUBE_API", "true"), ("KINDLING_KUBE_WEBHOOKS_LISTEN", "127.0.0.1:0")],
            "needs --kube-webhooks-service (KINDLING_KUBE_WEBHOOKS_SERVICE), or",
        ),
    ] {
        expect_refused(&scratch, variables, &[phrase]);
    }
    assert!(!scratch.has_file("kindling-data"));
}

#[test]
fn rejects_names_similar_to_settings_of_access_encryption_and_integrity() {
    let scratch = Scratch::new();
    let protected: Vec<&str> =
        SETTINGS.iter().filter(|(_, empty, _)| *empty == Refused).map(|(name, ..)| *name).collect();
    assert!(protected.len() > 20);
    for name in protected.into_iter().chain(["EC_PRIVATE_KEY_PEM"]) {
        let wrong = match name.strip_prefix("KINDLING_") {
            Some(_) => name[..name.len() - 1].to_owned(),
            None => format!("KINDLING_{name}"),
        };
        expect_refused(
            &scratch,
            &[(&wrong, "secret")],
            &[&format!("the variable {wrong} has no effect; use {name}, ")],
        );
    }
    assert_eq!(scratch.names(), Vec::<String>::new());
}

#[test]
fn unknown_variables_are_warnings_of_serve_alone() {
    let scratch = Scratch::new();
    let variables = [
        ("KINDLING_DATADIR", "secret"),
        ("KINDLING_OS_IMAGES", "secret"),
        ("DB_SSL_MODE", "secret"),
        ("KINDLING_PORT", "tcp://10.0.0.1:8090"),
        ("KINDLING_SERVICE_HOST", "10.0.0.1"),
        ("KINDLING_SERVICE_PORT_HTTP", "8090"),
        ("KINDLING_PORT_8090_TCP_ADDR", "10.0.0.1"),
        ("KINDLING_REQUIRE_TOOLS", "1"),
    ];
    let log = ServeProcess::start(&scratch, &variables, &[]).stop();
    for (name, meant) in [
        ("KINDLING_DATADIR", "KINDLING_DATA_DIR"),
        ("KINDLING_OS_IMAGES", "OS_IMAGES"),
        ("DB_SSL_MODE", "DB_SSLMODE"),
    ] {
        let warning = format!("the variable {name} has no effect; did you mean {meant}?");
        assert!(log.lines().any(|line| line.contains("WARN") && line.contains(&warning)), "{warning}: {log}");
    }
    assert_eq!(log.matches("has no effect").count(), 3, "{log}");
    assert!(!log.contains("secret"), "{log}");
    let other =
        scratch.command(["auth", "keys", "--env"]).env("KINDLING_AUTH_TYPE", "local").env("AUTH_TYPE", "");
    assert!(other.run().expect_text().starts_with("EC_PRIVATE_KEY_PEM="));
}

#[test]
fn settings_that_open_access_are_warnings() {
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    let key = "keys/ec-private-key.pem";
    let local = [("AUTH_TYPE", "local"), ("KINDLING_EC_PRIVATE_KEY_FILE", key)];
    let exposed = "other users can read this private key; set its mode to 0600";
    let log = ServeProcess::start(&scratch, &local, &[]).stop();
    assert!(!log.contains(exposed), "{log}");
    for mode in [0o640, 0o604] {
        set_permissions(scratch.path(key), Permissions::from_mode(mode)).unwrap();
        let log = ServeProcess::start(&scratch, &local, &[]).stop();
        let warning = format!("{exposed} file={key} mode={mode:04o}");
        assert!(log.lines().any(|line| line.contains("WARN") && line.contains(&warning)), "{log}");
    }
    for (variables, phrase) in [
        (&[("ALLOWED_DOMAINS", "*")][..], "--allowed-domains (ALLOWED_DOMAINS) contains `*`"),
        (&[("ALLOWED_DOMAINS", "https://a,https://*")], "--allowed-domains (ALLOWED_DOMAINS) contains `*`"),
        (&[("KINDLING_ALLOWED_HOSTS", "a,*")], "--allowed-hosts (KINDLING_ALLOWED_HOSTS) contains `*`"),
        (&[("SKIP_CERT_VERIFICATION", "true")], "agents do not verify this service"),
        (&[("INSECURE_SKIP_VERIFY", "true")], "base image downloads are not protected"),
        (
            &[("AUTH_TYPE", "none"), ("KINDLING_EC_PRIVATE_KEY_FILE", key)],
            "has no effect with --auth-type none (AUTH_TYPE=none)",
        ),
        (
            &[("KINDLING_ALLOW_OPEN_ACCESS", "true"), local[0], local[1]],
            "--allow-open-access (KINDLING_ALLOW_OPEN_ACCESS) has no effect",
        ),
    ] {
        let log = ServeProcess::start(&scratch, variables, &[]).stop();
        assert!(log.lines().any(|line| line.contains("WARN") && line.contains(phrase)), "{phrase}: {log}");
    }
}

#[test]
fn rejects_invalid_proxies() {
    let scratch = Scratch::new();
    for (variables, phrase) in [
        (
            &[("HTTPS_PROXY", "htp://me:secret@proxy:3128")][..],
            "HTTPS_PROXY is not the URL of a proxy: its scheme",
        ),
        (&[("http_proxy", "http://me:secret@")], "http_proxy is not the URL of a proxy: "),
        (&[("ALL_PROXY", "socks5://me:secret@proxy")], "ALL_PROXY is not the URL of a proxy: its scheme"),
        (
            &[("ALL_PROXY", "proxy:1"), ("NO_PROXY", "10.0.0.0/8, 10.1.2.3:8080")],
            "entry 2 of NO_PROXY would match no host: ports",
        ),
        (
            &[("ALL_PROXY", "proxy:1"), ("no_proxy", "*.example.com")],
            "entry 1 of no_proxy would match no host: the only wildcard",
        ),
        (
            &[("HTTP_PROXY", "proxy:1"), ("NO_PROXY", "http://me:secret@proxy:3128")],
            "entry 1 of NO_PROXY would match no host: ports",
        ),
    ] {
        expect_refused(&scratch, variables, &[phrase]);
    }
    assert_eq!(scratch.names(), Vec::<String>::new());
    let valid = [
        ("HTTP_PROXY", "http://me:secret@127.0.0.1:1"),
        ("HTTPS_PROXY", "127.0.0.1:1"),
        ("ALL_PROXY", ""),
        ("NO_PROXY", "*,127.0.0.1,::1,10.0.0.0/8,.example.com,localhost"),
    ];
    let log = ServeProcess::start(&scratch, &valid, &[]).stop();
    assert!(!log.contains("secret"), "{log}");
    // Exceptions are allowed without a proxy.
    ServeProcess::start(&scratch, &[("NO_PROXY", "localhost:8080")], &[]).stop();
}

/// The runtime used to wait forever for its threads instead of reporting an error.
#[test]
fn too_few_threads_are_an_error() {
    if require_tool("prlimit").is_none() {
        return;
    }
    let scratch = Scratch::new();
    set_permissions(scratch.folder(), Permissions::from_mode(0o777)).unwrap();
    let program = scratch.path("kindling");
    std::fs::copy(KINDLING, &program).unwrap();
    // The limit counts all processes of a user, and does not apply to root.
    let is_root = rustix::process::geteuid().is_root();
    for limit in if is_root { 1..=6 } else { 1..=1 } {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={limit}")).arg(&program).args(["serve", "--listen", "127.0.0.1:0"]);
        command.current_dir(scratch.folder());
        if is_root {
            command.uid(THREAD_TEST_USER);
        }
        let output = ProgramRun::from(command).run();
        output.expect_failure("threads; raise the limit of processes (ulimit -u, TasksMax= of systemd");
        output.expect_failure("Resource temporarily unavailable");
        assert_eq!(scratch.names(), ["kindling"]);
    }
}
