//! Downloads by the browser, and what the page shows of others.

use reqwest::Response;
use sha2::{Digest, Sha256};

use crate::browser::Browser;
use crate::run;
use crate::service::{Service, small};
use crate::support::Scratch;

/// The name that an answer is to be saved under.
pub(crate) fn file_name(answer: &Response) -> String {
    let disposition = answer.headers()["content-disposition"].to_str().unwrap();
    disposition.split_once("filename=").unwrap().1.trim_matches('"').to_owned()
}

/// A link on the page gives the image that any client gets.
#[test]
fn the_browser_downloads_what_others_do() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        let made = service.infra_env("demo").await;
        let id = made["id"].as_str().unwrap();
        browser.go(&service.url(&format!("/#{id}"))).await;
        for name in ["full.iso", "minimal.iso"] {
            let link = browser.find(&format!(".files a[href$='/{name}']")).await;
            link.click().await;
            let url = format!("/i/{id}/{name}");
            let answer = service.get(&url).await;
            let saved = file_name(&answer);
            let expected = answer.bytes().await.unwrap();
            let bytes = browser.downloaded(&saved).await;
            assert!(bytes == expected, "{name}");
            let digest = service.get(&format!("{url}.sha256")).await.text().await.unwrap();
            let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(digest.starts_with(&hex), "{name}: {digest}");
        }
        browser.until("return document.querySelectorAll('.badge.complete').length === 2").await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

/// Whoever reads slowly is seen to move, without the page being loaded again.
#[test]
fn a_slow_reader_is_seen_to_move() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let recipe = small().rootfs_len(256 << 20);
        let service = Service::start_with(Scratch::new(), recipe, &["--listen", "127.0.0.1:0"]).await;
        let made = service.infra_env("demo").await;
        let id = made["id"].as_str().unwrap();
        browser.go(&service.url(&format!("/#{id}"))).await;
        browser.find("[data-slot=nobody]").await;
        let mut answer = service.get(&format!("/i/{id}/full.iso")).await;
        let size = answer.content_length().unwrap();
        let mut read = 0;
        let mut seen = Vec::new();
        let bar = browser.find("[data-slot=readers] progress").await;
        for quarter in 1..4 {
            while read < size * quarter / 4 {
                read += u64::try_from(answer.chunk().await.unwrap().unwrap().len()).unwrap();
            }
            // What lies between the server and us is some megabytes at most.
            let (least, most) = (quarter * 25, quarter * 25 + 15);
            let percent = "Number(document.querySelector('[data-slot=readers] progress')?.value)";
            browser.until(&format!("return {percent} >= {least}")).await;
            let shown = browser.script(&format!("return {percent}")).await.as_f64().unwrap();
            assert!(shown <= f64::from(u32::try_from(most).unwrap()), "{shown} after {quarter} quarters");
            assert_eq!(browser.find("[data-slot=readers] .badge").await.text().await, "reading");
            seen.push(shown);
        }
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
        while answer.chunk().await.unwrap().is_some() {}
        browser.until("return document.querySelector('[data-slot=readers] .badge.complete')").await;
        let row = browser.find("[data-slot=readers]").await.text().await;
        assert!(row.contains("127.0.0.1") && row.contains("full.iso") && row.contains("100 %"), "{row}");
        // Whoever has it read to them is still where they were.
        assert_eq!(bar.property("value").await, 100);
    });
}
