//! Base images during their download, and base images that cannot be downloaded.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::browser::Browser;
use crate::run_test;
use crate::service::{API, PageService, small_recipe};
use crate::support::Scratch;

/// Starts a server that sends half of a file, and the rest on demand. Returns its URL.
fn serve_half_then_rest(bytes: Vec<u8>) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/live.iso", listener.local_addr().unwrap());
    let (go_on, resumed): (_, Receiver<()>) = channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            stream.write_all(answer.as_bytes()).unwrap();
            if head.starts_with(b"HEAD") {
                continue;
            }
            let (half, rest) = bytes.split_at(bytes.len() / 2);
            stream.write_all(half).unwrap();
            if resumed.recv().is_err() {
                return;
            }
            stream.write_all(rest).unwrap();
        }
    });
    (url, go_on)
}

#[test]
fn base_image_download_progress_is_shown() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let (url, go_on) = serve_half_then_rest(small_recipe().build());
        let options = ["--listen", "127.0.0.1:0", "--fetch-images", "at-start"];
        let service = PageService::spawn(Scratch::new(), &url, &options);
        let infra_env = service.create_infra_env("early").await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("#base-images .badge.downloading").await;
        browser.wait_until("return document.querySelector('#base-images progress')?.position === 0.5").await;
        assert!(
            browser
                .find_visible("#base-images progress")
                .await
                .accessible_name()
                .await
                .ends_with(": downloading")
        );
        assert_eq!(browser.find_visible("#health").await.text().await, "waiting");
        browser.find_visible("[data-slot=waiting]").await;
        assert!(browser.find_all(".files data").await.is_empty());
        go_on.send(()).unwrap();
        browser.find_visible("#base-images .badge.ready").await;
        browser.find_visible(".files data").await;
        browser.wait_until("return document.getElementById('health').textContent === 'ready'").await;
        let health = browser.new_requests().await.into_iter().filter(|url| url.ends_with("/health"));
        assert!(health.count() > 1);
    });
}

#[test]
fn unavailable_base_image_shows_its_reason() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let closed_address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = ["--listen", "127.0.0.1:0", "--fetch-images", "at-start"];
        let service =
            PageService::spawn(Scratch::new(), &format!("http://{closed_address}/live.iso"), &options);
        browser.open_url(&service.url("/")).await;
        browser.find_visible("#base-images .badge.failed").await;
        let text = browser.find_visible("#base-images").await.text().await;
        assert!(text.contains(&closed_address.to_string()) && text.contains(". Next attempt at"), "{text}");
        browser.find_visible("#health .badge.waiting").await;
        assert_eq!(
            browser.find_visible("#health").await.text().await,
            "waiting 1 of 1 base images is not available."
        );
        let infra_env = service.create_infra_env("early").await;
        browser.open_url(&service.url(&format!("/?open#{}", infra_env["id"].as_str().unwrap()))).await;
        browser
            .wait_until("return document.querySelector('[data-slot=waiting]')?.textContent.includes('is not available')")
            .await;
        assert_eq!(
            browser.find_visible("[data-slot=waiting]").await.text().await,
            "The base image is not available: see Base images below. The service retries; downloads wait for it."
        );
    });
}

#[test]
fn missing_base_images_are_reported_before_the_form_fails() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let service = PageService::spawn_with_images(Scratch::new(), "", &["--listen", "127.0.0.1:0"]);
        browser.open_url(&service.url("/")).await;
        browser.find_visible("#health .badge.warning").await;
        assert_eq!(browser.find_visible("#health").await.text().await, "no base images");
        let note = browser.find_visible("#no-base-images").await.text().await;
        let start = "This service has no base image, so no infra-env can be created. Add one here, or ";
        assert!(note.starts_with(start), "{note}");
        assert!(
            note.contains("kindling serve --os-images '[{") && note.contains("--os-images-file"),
            "{note}"
        );
        assert_eq!(
            browser.run_script("return document.querySelector('table.panel').checkVisibility()").await,
            false
        );
        browser.find_visible("#new").await.click().await;
        assert_eq!(
            browser.find_visible("#creation-problem").await.text().await,
            "This service has no base image, so no infra-env can be created."
        );
        browser.find_visible("#cancel").await.click().await;
        let with_image = PageService::start().await;
        browser.open_url(&with_image.url("/")).await;
        browser.find_visible("#base-images .badge.ready").await;
        assert_eq!(browser.run_script("return document.getElementById('no-base-images').hidden").await, true);
    });
}

/// An open page shows that its service is unreachable.
#[test]
fn unreachable_service_is_reported() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_url(&service.url("/")).await;
        browser.wait_until("return document.getElementById('health').textContent === 'ready'").await;
        drop(service);
        browser
            .wait_until("return document.getElementById('health').textContent.includes('does not respond')")
            .await;
        browser.find_visible("#refresh").await.click().await;
        assert_eq!(browser.find_visible("#problem").await.text().await, "The service does not respond.");
    });
}

/// A user adds a base image, watches its download, creates an infra-env for it, and removes it.
#[test]
fn base_image_is_added_with_progress_and_removed() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let (url, go_on) = serve_half_then_rest(small_recipe().build());
        let options = ["--listen", "127.0.0.1:0", "--added-image-servers", "127.0.0.1"];
        let service = PageService::spawn_with_images(Scratch::new(), "", &options);
        browser.open_url(&service.url("/")).await;
        browser.find_visible("#no-base-images").await;
        browser.find_visible("#new-image").await.click().await;
        browser.find_visible("#image-form [name=url]").await.type_text(&url).await;
        browser.find_visible("#image-form [name=openshift_version]").await.type_text("nonsense").await;
        browser.find_visible("#image-form [name=version]").await.type_text("499.1").await;
        browser.find_visible("#image-form button.primary").await.click().await;
        let refusal = browser.find_visible("#image-problem").await.text().await;
        assert_eq!(refusal, "openshift_version \"nonsense\" is not valid");
        let version = browser.find_visible("#image-form [name=openshift_version]").await;
        browser.run_script("document.querySelector('#image-form [name=openshift_version]').value = ''").await;
        version.type_text("4.17").await;
        browser.find_visible("#image-form button.primary").await.click().await;
        browser.wait_until("return document.querySelector('#base-images progress')?.position === 0.5").await;
        go_on.send(()).unwrap();
        browser.find_visible("#base-images .badge.ready").await;
        browser.find_visible("#new").await.click().await;
        browser
            .wait_until(
                "return document.querySelector('#creation [name=openshift_version]').value === '4.17'",
            )
            .await;
        browser.find_visible("#cancel").await.click().await;
        let button = browser.find_visible("#base-images button").await;
        assert_eq!(button.accessible_name().await, "Remove the base image for 4.17, x86_64");
        let infra_env = service.create_infra_env("user").await;
        button.click().await;
        let refusal = browser.find_visible("#image-list-problem").await.text().await;
        assert_eq!(refusal, format!("infra-env {} uses the OS image", infra_env["id"].as_str().unwrap()));
        let path = format!("{API}/infra-envs/{}", infra_env["id"].as_str().unwrap());
        service.client.delete(service.url(&path)).send().await.unwrap();
        browser.find_visible("#base-images button").await.click().await;
        browser.find_visible("#no-base-images").await;
    });
}

/// The page or the service refuses a URL that no download could use, before anything is stored.
#[test]
fn rejects_impossible_base_image_urls() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_url(&service.url("/")).await;
        browser.find_visible("#new-image").await.click().await;
        let fault = "const field = document.querySelector('#image-form [name=url]'); field.value = URL; \
                     field.dispatchEvent(new Event('input', {bubbles: true})); return field.validationMessage";
        for (url, reason) in [
            ("ftp://mirror.example/a.iso", "The URL must begin with http:// or https://."),
            ("/srv/a.iso", "The URL must begin with http:// or https://."),
            ("http://mirror.example/my image.iso", "The URL contains \" \". Write it percent-encoded."),
            ("http://mirror.example:99999/a.iso", "The URL has no valid host or port."),
            ("http://:80/a.iso", "The URL has no valid host or port."),
            ("https://reader:secret@mirror.example/a.iso?b=c", ""),
        ] {
            let script = fault.replace("URL", &serde_json::to_string(url).unwrap());
            assert_eq!(browser.run_script(&script).await, reason, "{url}");
        }
        browser.run_script("document.querySelector('#image-form [name=url]').value = ''").await;
        browser.find_visible("#image-form [name=url]").await.type_text("http://127.0.0.1/live.iso").await;
        browser.find_visible("#image-form [name=openshift_version]").await.type_text("4.99").await;
        browser.find_visible("#image-form [name=version]").await.type_text("499.1").await;
        browser.find_visible("#image-form button.primary").await.click().await;
        let refusal = browser.find_visible("#image-problem").await.text().await;
        let near = "images must not be added from 127.0.0.1, which is not one of the servers that the service allows";
        assert_eq!(refusal, format!("url \"http://127.0.0.1/live.iso\": {near}"));
        let images = service.api_json(reqwest::Method::GET, "/os-images", &serde_json::json!(null)).await;
        assert_eq!(images.as_array().unwrap().len(), 1);
    });
}
