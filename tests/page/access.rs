//! Who may see what: tokens, TLS, and listeners that are not for people.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData as _};
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::downloads::file_name;
use crate::run;
use crate::service::{Service, small};
use crate::support::{Authority, Scratch, write_pair};

const KEY: &str = "keys/ec-private-key.pem";

/// A service that wants tokens, over TLS with a certificate that a browser is told of, and without TLS for machines.
async fn secured() -> (Service, String) {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let pair = authority.issue();
    write_pair(&scratch, &pair);
    scratch.kindling("auth keys --out keys").success();
    let token = scratch.kindling(&format!("auth token --ec-private-key-file {KEY} --user")).printed();
    let options = [
        ["--listen-tls", "127.0.0.1:0"],
        ["--listen", "127.0.0.1:0"],
        ["--https-cert-file", "cert.pem"],
        ["--https-key-file", "key.pem"],
        ["--auth-type", "local"],
        ["--ec-private-key-file", KEY],
    ];
    let mut service = Service::start_with(scratch, small(), options.as_flattened()).await;
    service.token = Some(token.trim().to_owned());
    let key = KeyPair::from_pem(&pair.1).unwrap();
    let pin = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    (service, format!("--ignore-certificate-errors-spki-list={pin}"))
}

/// The token is asked for, goes with requests alone, and is forgotten when asked; an image comes whole over TLS.
#[test]
fn a_token_opens_the_page_and_images_over_tls() {
    run(async {
        let (service, pin) = secured().await;
        let Some(browser) = Browser::start_with(&[pin]).await else { return };
        let made = service.infra_env("secret").await;
        browser.go(&service.url("/")).await;
        let field = browser.find("#sign-in [name=token]").await;
        assert_eq!(
            (field.label().await, field.property("type").await),
            ("Token".to_owned(), "password".into())
        );
        assert!(!browser.text().await.contains("secret"));
        field.enter("not-a-token\n").await;
        let told = browser.find("#sign-in .problem").await.text().await;
        assert!(!told.is_empty());
        let token = service.token.clone().unwrap();
        browser.find("#sign-in [name=token]").await.enter(&format!("{token}\n")).await;
        browser.find(".opener").await.click().await;
        let link = browser.find(".files a[href$='/full.iso']").await;
        let url = link.property("href").await.as_str().unwrap().to_owned();
        // The URL is for whoever it is given to: with the token of the infra-env, never that of the person.
        let of_infra_env = made["download_url"].as_str().unwrap().split('/').nth(4).unwrap();
        assert!(url.contains(of_infra_env) && !url.contains(&token), "{url}");
        link.click().await;
        let answer = service.client.get(&url).send().await.unwrap();
        let saved = file_name(&answer);
        let expected = answer.bytes().await.unwrap();
        let bytes = browser.downloaded(&saved).await;
        assert!(bytes == expected);
        let digest = service.client.get(format!("{url}.sha256")).send().await.unwrap().text().await.unwrap();
        let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(digest.starts_with(&hex), "{digest}");
        // It is kept in this tab alone, and no longer than wanted.
        assert_eq!(browser.script("return localStorage.length + document.cookie.length").await, 0);
        let asked = browser.requests().await;
        assert!(asked.iter().all(|url| !url.contains(&token)), "{asked:?}");
        browser.find("#forget").await.click().await;
        browser.find("#sign-in [name=token]").await;
        assert_eq!(browser.script("return sessionStorage.length").await, 0);
    });
}

/// Where the API is not, the page is not either.
#[test]
fn machines_that_boot_without_tls_get_no_page() {
    run(async {
        let (service, _) = secured().await;
        for path in ["/", "/page/page.js", "/page/page.css"] {
            let [tls, plain] = &service.urls[..] else { panic!("{:?}", service.urls) };
            let status =
                async |base: &str| service.client.get(format!("{base}{path}")).send().await.unwrap().status();
            assert_eq!((status(tls).await.as_u16(), status(plain).await.as_u16()), (200, 404), "{path}");
        }
        assert!(Path::new(&service.scratch.path(KEY)).is_file());
    });
}
