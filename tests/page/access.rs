//! Access to the page: tokens, TLS, and listeners that are only for machines.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData as _};
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::downloads::file_name;
use crate::run_test;
use crate::service::{PageService, small_recipe};
use crate::support::{CertificateAuthority, Scratch, write_pair};

const KEY: &str = "keys/ec-private-key.pem";

/// Starts a service that requires tokens, with one listener over TLS and one without TLS for machines. Returns the
/// service and the option with which the browser trusts its certificate.
async fn service_with_tokens() -> (PageService, String) {
    let (scratch, authority) = (Scratch::new(), CertificateAuthority::new());
    let pair = authority.issue();
    write_pair(&scratch, &pair);
    scratch.run_kindling("auth keys --out keys").expect_success();
    let token = scratch.run_kindling(&format!("auth token --ec-private-key-file {KEY} --user")).expect_text();
    let options = [
        ["--listen-tls", "127.0.0.1:0"],
        ["--listen", "127.0.0.1:0"],
        ["--https-cert-file", "cert.pem"],
        ["--https-key-file", "key.pem"],
        ["--auth-type", "local"],
        ["--ec-private-key-file", KEY],
    ];
    let mut service = PageService::start_with_options(scratch, small_recipe(), options.as_flattened()).await;
    service.token = Some(token.trim().to_owned());
    let key = KeyPair::from_pem(&pair.1).unwrap();
    let pin = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    (service, format!("--ignore-certificate-errors-spki-list={pin}"))
}

/// The page requests the token, sends it only in requests, and deletes it on request. An image downloads completely
/// over TLS.
#[test]
fn token_opens_the_page_and_images_over_tls() {
    run_test(async {
        let (service, pin) = service_with_tokens().await;
        let Some(browser) = Browser::start_with_options(&[pin]).await else { return };
        let infra_env = service.create_infra_env("secret").await;
        browser.open_url(&service.url("/")).await;
        let field = browser.find_visible("#sign-in [name=token]").await;
        assert_eq!(
            (field.accessible_name().await, field.property("type").await),
            ("Token".to_owned(), "password".into())
        );
        assert!(!browser.visible_text().await.contains("secret"));
        field.type_text("not-a-token\n").await;
        let message = browser.find_visible("#sign-in .problem").await.text().await;
        assert!(!message.is_empty());
        let token = service.token.clone().unwrap();
        browser.find_visible("#sign-in [name=token]").await.type_text(&format!("{token}\n")).await;
        browser.find_visible(".opener").await.click().await;
        let link = browser.find_visible(".files a[href$='/full.iso']").await;
        let url = link.property("href").await.as_str().unwrap().to_owned();
        // Users may share URLs, so they contain the token of the infra-env and never the user's token.
        let infra_env_token = infra_env["download_url"].as_str().unwrap().split('/').nth(4).unwrap();
        assert!(url.contains(infra_env_token) && !url.contains(&token), "{url}");
        link.click().await;
        let answer = service.client.get(&url).send().await.unwrap();
        let saved = file_name(&answer);
        let expected = answer.bytes().await.unwrap();
        let bytes = browser.take_download(&saved).await;
        assert!(bytes == expected);
        let digest = service.client.get(format!("{url}.sha256")).send().await.unwrap().text().await.unwrap();
        let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(digest.starts_with(&hex), "{digest}");
        // The page opens the stream of changes with a ticket.
        service.create_infra_env("of another client").await;
        browser.wait_until("return document.querySelectorAll('#infra-envs .opener').length === 2").await;
        // Only this tab stores the token, until the user signs out.
        assert_eq!(browser.run_script("return localStorage.length + document.cookie.length").await, 0);
        let requests = browser.new_requests().await;
        assert!(requests.iter().all(|url| !url.contains(&token)), "{requests:?}");
        browser.find_visible("#forget").await.click().await;
        browser.find_visible("#sign-in [name=token]").await;
        assert_eq!(browser.run_script("return sessionStorage.length").await, 0);
    });
}

/// A listener without the API has no page either.
#[test]
fn plain_http_boot_port_serves_no_page() {
    run_test(async {
        let (service, _) = service_with_tokens().await;
        for path in ["/", "/page/page.js", "/page/page.css"] {
            let [tls, plain] = &service.urls[..] else { panic!("{:?}", service.urls) };
            let status =
                async |base: &str| service.client.get(format!("{base}{path}")).send().await.unwrap().status();
            assert_eq!((status(tls).await.as_u16(), status(plain).await.as_u16()), (200, 404), "{path}");
        }
        assert!(Path::new(&service.scratch.path(KEY)).is_file());
    });
}
