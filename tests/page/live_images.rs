//! Live images on their way, and those that do not come.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::browser::Browser;
use crate::run;
use crate::service::{Service, small};
use crate::support::Scratch;

/// A server that sends half of a file, and the rest when it is told to. Gives its URL.
fn hesitant(bytes: Vec<u8>) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/live.iso", listener.local_addr().unwrap());
    let (go_on, told): (_, Receiver<()>) = channel();
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
            if told.recv().is_err() {
                return;
            }
            stream.write_all(rest).unwrap();
        }
    });
    (url, go_on)
}

#[test]
fn a_live_image_is_seen_to_come() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let (url, go_on) = hesitant(small().build());
        let options = ["--listen", "127.0.0.1:0", "--fetch-images", "at-start"];
        let service = Service::spawn(Scratch::new(), &url, &options);
        let made = service.infra_env("early").await;
        browser.go(&service.url(&format!("/#{}", made["id"].as_str().unwrap()))).await;
        browser.find("#live-images .badge.downloading").await;
        browser.until("return document.querySelector('#live-images progress')?.position === 0.5").await;
        assert!(browser.find("#live-images progress").await.label().await.ends_with(": downloading"));
        assert_eq!(browser.find("#health").await.text().await, "waiting");
        browser.find("[data-slot=waiting]").await;
        assert!(browser.all(".files data").await.is_empty());
        go_on.send(()).unwrap();
        browser.find("#live-images .badge.ready").await;
        browser.find(".files data").await;
        browser.until("return document.getElementById('health').textContent === 'ready'").await;
        let health = browser.requests().await.into_iter().filter(|url| url.ends_with("/health"));
        assert!(health.count() > 1);
    });
}

#[test]
fn a_live_image_that_cannot_be_had_says_why() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = ["--listen", "127.0.0.1:0", "--fetch-images", "at-start"];
        let service = Service::spawn(Scratch::new(), &format!("http://{gone}/live.iso"), &options);
        browser.go(&service.url("/")).await;
        browser.find("#live-images .badge.failed").await;
        let told = browser.find("#live-images").await.text().await;
        assert!(told.contains(&gone.to_string()) && told.contains(". Next attempt at"), "{told}");
        browser.find("#health .badge.waiting").await;
        assert_eq!(
            browser.find("#health").await.text().await,
            "waiting 1 of 1 base images is not available."
        );
        let made = service.infra_env("early").await;
        browser.go(&service.url(&format!("/?open#{}", made["id"].as_str().unwrap()))).await;
        browser
            .until("return document.querySelector('[data-slot=waiting]')?.textContent.includes('is not available')")
            .await;
        assert_eq!(
            browser.find("[data-slot=waiting]").await.text().await,
            "The base image is not available: see Base images below. The service tries again, and downloads wait for it."
        );
    });
}

#[test]
fn service_without_base_images_says_so_before_the_form_fails() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::spawn_with_images(Scratch::new(), "", &["--listen", "127.0.0.1:0"]);
        browser.go(&service.url("/")).await;
        browser.find("#health .badge.warning").await;
        assert_eq!(browser.find("#health").await.text().await, "no base images");
        assert_eq!(
            browser.find("#no-base-images").await.text().await,
            "This service has no base image, so no infra-env can be created. Restart it with --os-images or \
             --os-images-file, or add one with POST api/assisted-install/v2/os-images."
        );
        assert_eq!(
            browser.script("return document.querySelector('table.panel').checkVisibility()").await,
            false
        );
        browser.find("#new").await.click().await;
        assert_eq!(
            browser.find("#creation-problem").await.text().await,
            "This service has no base image, so no infra-env can be created."
        );
        browser.find("#cancel").await.click().await;
        let with_image = Service::start().await;
        browser.go(&with_image.url("/")).await;
        browser.find("#live-images .badge.ready").await;
        assert_eq!(browser.script("return document.getElementById('no-base-images').hidden").await, true);
    });
}

/// A page that is open tells that its service is gone.
#[test]
fn a_service_that_is_gone_is_told_of() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.go(&service.url("/")).await;
        browser.until("return document.getElementById('health').textContent === 'ready'").await;
        drop(service);
        browser
            .until("return document.getElementById('health').textContent.includes('does not answer')")
            .await;
        browser.find("#refresh").await.click().await;
        assert_eq!(browser.find("#problem").await.text().await, "The service does not answer.");
    });
}
