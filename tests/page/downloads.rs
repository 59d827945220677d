//! Downloads by the browser, and the progress of other clients on the page.

use reqwest::Response;
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::run_test;
use crate::service::{PageService, small_recipe};
use crate::support::Scratch;

/// Returns the file name in a response's `Content-Disposition`.
pub(crate) fn file_name(answer: &Response) -> String {
    let disposition = answer.headers()["content-disposition"].to_str().unwrap();
    disposition.split_once("filename=").unwrap().1.trim_matches('"').to_owned()
}

/// A link on the page downloads the same image as other clients.
#[test]
fn browser_downloads_the_same_bytes() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        let id = infra_env["id"].as_str().unwrap();
        browser.open_url(&service.url(&format!("/#{id}"))).await;
        for name in ["full.iso", "minimal.iso"] {
            let link = browser.find_visible(&format!(".files a[href$='/{name}']")).await;
            link.click().await;
            let url = format!("/i/{id}/{name}");
            let answer = service.get(&url).await;
            let saved = file_name(&answer);
            let expected = answer.bytes().await.unwrap();
            let bytes = browser.take_download(&saved).await;
            assert!(bytes == expected, "{name}");
            let digest = service.get(&format!("{url}.sha256")).await.text().await.unwrap();
            let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(digest.starts_with(&hex), "{name}: {digest}");
        }
        browser.wait_until("return document.querySelectorAll('.badge.complete').length === 2").await;
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// The page updates the progress of a slow reader without a reload.
#[test]
fn progress_of_a_slow_reader_is_shown() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let recipe = small_recipe().rootfs_len(256 << 20);
        let service =
            PageService::start_with_options(Scratch::new(), recipe, &["--listen", "127.0.0.1:0"]).await;
        let infra_env = service.create_infra_env("demo").await;
        let id = infra_env["id"].as_str().unwrap();
        browser.open_url(&service.url(&format!("/#{id}"))).await;
        browser.find_visible("[data-slot=nobody]").await;
        let mut answer = service.get(&format!("/i/{id}/full.iso")).await;
        let size = answer.content_length().unwrap();
        let mut read = 0;
        let mut percentages = Vec::new();
        let bar = browser.find_visible("[data-slot=readers] progress").await;
        for quarter in 1..4 {
            while read < size * quarter / 4 {
                read += u64::try_from(answer.chunk().await.unwrap().unwrap().len()).unwrap();
            }
            // The buffers between server and client hold a few megabytes at most.
            let (least, most) = (quarter * 25, quarter * 25 + 15);
            let percent = "Number(document.querySelector('[data-slot=readers] progress')?.value)";
            browser.wait_until(&format!("return {percent} >= {least}")).await;
            let percentage = browser.run_script(&format!("return {percent}")).await.as_f64().unwrap();
            assert!(
                percentage <= f64::from(u32::try_from(most).unwrap()),
                "{percentage} after {quarter} quarters"
            );
            assert_eq!(browser.find_visible("[data-slot=readers] .badge").await.text().await, "reading");
            percentages.push(percentage);
        }
        assert!(percentages.is_sorted_by(|one, next| one < next), "{percentages:?}");
        while answer.chunk().await.unwrap().is_some() {}
        browser.wait_until("return document.querySelector('[data-slot=readers] .badge.complete')").await;
        let row = browser.find_visible("[data-slot=readers]").await.text().await;
        assert!(row.contains("127.0.0.1") && row.contains("full.iso") && row.contains("100 %"), "{row}");
        // Updates do not move the position of a screen reader.
        assert_eq!(bar.property("value").await, 100);
    });
}
