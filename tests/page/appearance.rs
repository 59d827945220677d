//! Tests the page's appearance and accessibility.

use std::path::Path;

use reqwest::Method;
use serde_json::json;

use crate::browser::Browser;
use crate::run_test;
use crate::service::{NMSTATE, PULL_SECRET, PageService, VERSION, file_url, hardware, small_recipe};
use crate::support::Scratch;

/// Minimum contrast of text, by WCAG 2.2, 1.4.3.
pub(crate) const MIN_CONTRAST: f64 = 4.5;

/// A script that finds the text with the lowest contrast to its background, and returns the text and the contrast.
pub(crate) const WORST: &str = r"
    const parse = (color) => {
      const numbers = color.match(/[\d.]+/g).map(Number);
      return numbers.length === 3 ? [...numbers, 1] : numbers;
    };
    const luminance = ([r, g, b]) => [r, g, b]
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = parse(getComputedStyle(at).backgroundColor);
        if (color[3] === 1) return color;
      }
      return [255, 255, 255, 1];
    };
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const seen = [...document.querySelectorAll('body *')]
      .filter((element) => element.checkVisibility() && !element.closest('.unseen') && hasText(element));
    const measured = seen.map((element) => {
      const [one, other] = [luminance(parse(getComputedStyle(element).color)), luminance(ground(element))].sort();
      return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), element.textContent.slice(0, 60)];
    });
    return [seen.length, ...measured.sort((one, next) => one[0] - next[0])[0]];";

/// Opens every part of the page except dialogs: the form with a host, and an infra-env with a reader and an open host.
async fn open_all_sections(browser: &Browser, service: &PageService) {
    service.create_infra_env("rack-12").await;
    let infra_env = service.create_infra_env("edge-munich").await;
    let id = infra_env["id"].as_str().unwrap();
    let url = service.url(&format!("/i/{id}/full.iso"));
    service.client.get(url).header("range", "bytes=0-400000").send().await.unwrap().bytes().await.unwrap();
    let host = "0f2a5d3c-1111-4222-8333-444455556666";
    service.register_host(&infra_env, host).await;
    service.report_hardware(&infra_env, host, &hardware("node-1")).await;
    browser.open_url(&service.url(&format!("/#{id}"))).await;
    browser.find_visible("[data-slot=readers] progress").await;
    browser.find_visible("[data-slot=hosts] button").await.click().await;
    browser.find_visible("tr.details .findings").await;
    browser.find_visible("#new").await.click().await;
    browser.wait_until("return document.querySelector('[name=openshift_version]').value").await;
    browser.find_visible("#add-argument").await.click().await;
    let path = browser.file_to_upload("node-a.yaml", &NMSTATE.replace("id: 0", "id: 4095"));
    browser.find_all("#nmstate").await[0].type_text(path.to_str().unwrap()).await;
    browser.find_visible(".machine").await;
    browser.find_visible("summary").await.click().await;
    browser.find_visible("#creation [name=name]").await.type_text("rack-13").await;
    browser.find_visible("[name=pull_secret]").await.type_text(crate::service::PULL_SECRET).await;
    browser.find_visible("[name=value]").await.type_text("quiet").await;
    browser.find_visible("[name=mac_address]").await.type_text("52:54:00:00:00:02\teth0").await;
    browser.find_visible("#creation button.primary").await.click().await;
    browser.find_visible("#creation-problem .findings").await;
}

/// Controls have a name and a role. Headings and ids are in order.
#[test]
fn controls_have_accessible_names() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        open_all_sections(&browser, &service).await;
        let mut count = 0;
        for element in
            browser.find_all("input, select, textarea, button, a, summary, progress, dialog[open]").await
        {
            if element.property("offsetParent").await.is_null() {
                continue;
            }
            let (label, role) = (element.accessible_name().await, element.role().await);
            assert!(
                !label.is_empty() && !role.is_empty() && role != "generic",
                "{label:?} {role}: {element:?}"
            );
            count += 1;
        }
        assert!(count > 40, "{count} elements were checked");
        for (selector, role) in
            [("main", "main"), ("table", "table"), ("#creation-problem", "alert"), ("#news", "status")]
        {
            assert_eq!(browser.find_all(selector).await[0].role().await, role, "{selector}");
        }
        let twice = "const ids = [...document.querySelectorAll('[id]')].map((element) => element.id); \
                     return ids.filter((id, index) => ids.indexOf(id) !== index)";
        assert_eq!(browser.run_script(twice).await, json!([]));
        let jumps = "const levels = [...document.querySelectorAll('h1, h2, h3, h4')] \
                       .filter((heading) => heading.checkVisibility()).map((heading) => Number(heading.tagName[1])); \
                     return [levels[0], levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)]";
        assert_eq!(browser.run_script(jumps).await, json!([1, []]));
    });
}

/// A script that finds texts that break inside a word: they have more lines than words.
const BROKEN: &str = r"
    const selector = 'h1, h2, h3, h4, label, legend, button, th, td, dt, .badge, .name, .facts';
    const isHead = (it) => it.closest('thead') && getComputedStyle(it.closest('thead')).position === 'absolute';
    const isSeen = (it) => it.checkVisibility() && !it.closest('.unseen') && !isHead(it);
    const seen = [...document.querySelectorAll(selector)].filter(isSeen);
    const texts = seen.flatMap((it) => [...it.childNodes]).filter((it) => it.nodeType === 3 && it.data.trim());
    const lines = (text) => {
      const range = document.createRange();
      range.selectNodeContents(text);
      return new Set([...range.getClientRects()].filter((it) => it.width > 0).map((it) => Math.round(it.top))).size;
    };
    const words = (text) => text.data.trim().split(/[\s-]+/).length;
    return [texts.length, texts.filter((text) => lines(text) > words(text)).map((text) => text.data)];";

/// A script that returns `true` if a table or an element in it is wider than the panel around it.
const WIDER: &str = r"
    const panels = [...document.querySelectorAll('table.panel, .inside')].filter((it) => it.checkVisibility());
    return panels.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.className);";

#[test]
fn long_messages_and_lists_do_not_break_words() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let path = "pub/openshift-v4/x86_64/dependencies/rhcos/4.20/latest/rhcos-live-iso.x86_64.iso";
        let scratch = Scratch::new();
        let base = scratch.path("base.iso");
        small_recipe().write_to(&base).unwrap();
        let image = |openshift: &str, version: &str, url: &str| json!({"openshift_version": openshift, "cpu_architecture": "x86_64", "version": version, "url": url});
        let images = json!([
            image("4.20", "9.6.20251023-0", &format!("http://127.0.0.1:1/{path}")),
            image("4.17", VERSION, &file_url(&base)),
        ]);
        let options = ["--listen", "127.0.0.1:0", "--fetch-images", "at-start"];
        let service = PageService::spawn_with_images(scratch, &images.to_string(), &options);
        let network: String =
            (0..6).map(|card| format!("- name: eth{card}\n  type: ethernet\n  state: up\n")).collect();
        let address = |card: usize| {
            let mac = format!("52:54:00:00:00:0{card}");
            json!({"mac_address": mac, "logical_nic_name": format!("eth{card}")})
        };
        let addresses: Vec<_> = (0..6).map(address).collect();
        let body = json!({
            "name": "edge-munich", "pull_secret": PULL_SECRET, "openshift_version": "4.20",
            "static_network_config": [
                {"network_yaml": format!("interfaces:\n{network}"), "mac_interface_map": addresses},
            ],
        });
        let infra_env = service.api_json(Method::POST, "/infra-envs", &body).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("#base-images .badge.failed").await;
        browser.find_visible(".files .url").await;
        browser.find_visible("#new").await.click().await;
        let mut all_broken = Vec::new();
        for width in [1280, 390] {
            browser.resize_window(width, 900).await;
            let broken = browser.run_script(BROKEN).await;
            assert!(broken[0].as_u64().unwrap() > 40, "{broken}");
            all_broken.extend(broken[1].as_array().unwrap().iter().map(|text| format!("{width}: {text}")));
            assert_eq!(browser.run_script(WIDER).await, json!([]), "{width}");
            let name = format!("page-failed-{width}.png");
            std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), browser.screenshot().await)
                .unwrap();
        }
        assert_eq!(all_broken, [""; 0]);
    });
}

/// A full IPv6 address has 39 characters.
#[test]
fn hosts_with_long_addresses_fit_into_their_card() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        let host = "0f2a5d3c-1111-4222-8333-444455556666";
        service.register_host(&infra_env, host).await;
        let mut report = hardware("node-1");
        report["interfaces"][0]["ipv6_addresses"] = json!(["2001:0db8:1111:2222:3333:4444:5555:6666/64"]);
        service.report_hardware(&infra_env, host, &report).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("[data-slot=hosts] button").await.click().await;
        browser
            .wait_until("return document.querySelector('tr.details').innerText.includes('2001:0db8:1111')")
            .await;
        for width in [1200, 900, 800, 390] {
            browser.resize_window(width, 900).await;
            assert_eq!(browser.run_script(WIDER).await, json!([]), "{width}");
        }
    });
}

#[test]
fn page_is_readable_in_light_and_dark_and_on_a_phone() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        open_all_sections(&browser, &service).await;
        let mut grounds = Vec::new();
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)] {
            browser.set_color_scheme(scheme).await;
            browser.resize_window(width, 900).await;
            let worst = browser.run_script(WORST).await;
            assert!(worst[0].as_u64().unwrap() > 60, "{worst}");
            assert!(worst[1].as_f64().unwrap() >= MIN_CONTRAST, "{scheme}, {width}: {worst}");
            let wide = browser
                .run_script(
                    "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
                )
                .await;
            assert_eq!(wide, 0, "{scheme}, {width}: the page is wider than the screen");
            let name = format!("page-{scheme}-{width}.png");
            let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(place, browser.screenshot().await).unwrap();
            grounds.push(browser.run_script("return getComputedStyle(document.body).backgroundColor").await);
        }
        assert_ne!(grounds[0], grounds[1]);
        // Screen readers must recognise table cells, also on a phone.
        assert_eq!(browser.find_visible(".files td").await.role().await, "cell");
    });
}

#[test]
fn footer_has_the_version_and_links() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_url(&service.url("/")).await;
        let version = format!("kindling-{}", env!("CARGO_PKG_VERSION"));
        browser
            .wait_until(&format!("return document.getElementById('version').textContent === '{version}'"))
            .await;
        let links = "return [...document.querySelectorAll('footer a')].map((link) => link.pathname)";
        assert_eq!(browser.run_script(links).await, json!(["/docs", "/openapi.json", "/health", "/metrics"]));
        for path in ["/openapi.json", "/health", "/metrics"] {
            assert_eq!(service.get(path).await.status(), 200, "{path}");
        }
    });
}
