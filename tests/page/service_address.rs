//! Tests the banner about base URLs that machines cannot reach.

use crate::browser::Browser;
use crate::run_test;
use crate::service::{PageService, small_recipe};
use crate::support::Scratch;

#[test]
fn banner_shows_a_loopback_base_url() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let service = PageService::start().await;
        service.create_infra_env("rack-12").await;
        browser.open_url(&service.url("/")).await;
        let banner = browser.find_visible("#unreachable").await.text().await;
        assert!(banner.contains(&format!("Images contain {}, so", service.urls[0])), "{banner}");
        assert!(banner.contains("--service-base-url"), "{banner}");
        assert_eq!(browser.find_all("#unreachable-urls code").await.len(), 1);
    });
}

#[test]
fn reachable_base_url_has_no_banner() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let options = ["--listen", "127.0.0.1:0", "--service-base-url", "http://192.0.2.1:8090"];
        let service = PageService::start_with_options(Scratch::new(), small_recipe(), &options).await;
        service.create_infra_env("rack-12").await;
        browser.open_url(&service.url("/")).await;
        browser.find_visible(".card").await;
        browser.wait_until("return document.getElementById('health').textContent === 'ready'").await;
        assert_eq!(browser.run_script("return document.getElementById('unreachable').hidden").await, true);
    });
}
