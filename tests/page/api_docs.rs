//! The page at `/docs`, which shows the API document.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::appearance::{MIN_CONTRAST, WORST};
use crate::browser::{Browser, key};
use crate::run_test;
use crate::service::PageService;
use crate::support::{Scratch, require_tool};

/// The visible operations.
const SHOWN: &str =
    "return [...document.querySelectorAll('.operation')].filter((it) => it.checkVisibility()).length";

async fn start() -> PageService {
    PageService::spawn(Scratch::new(), "http://127.0.0.1:9/live.iso", &["--listen", "127.0.0.1:0"])
}

/// Opens an operation by its deep link. Returns its example command.
async fn open_operation(browser: &Browser, service: &PageService, id: &str) -> String {
    // A new query loads the page again.
    browser.open_url(&service.url(&format!("/docs?{id}#{id}"))).await;
    browser.find_visible(".example code").await.text().await
}

/// Replaces the response to the page's request for the API document.
async fn replace_document(browser: &Browser, document: &Value) {
    let script = format!("window.fetch = async () => new Response({})", json!(document.to_string()));
    browser.devtools_command("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
}

#[test]
fn operations_are_filtered_and_opened() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        let policy = service.get("/docs").await.headers()["content-security-policy"].clone();
        let policy = policy.to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'self'; ") && policy.contains("trusted-types 'none'"),
            "{policy}"
        );
        browser.open_url(&service.url("/docs")).await;
        browser.find_visible(".operation").await;
        let document: Value = service.get("/openapi.json").await.json().await.unwrap();
        let items = document["paths"].as_object().unwrap().values();
        let count =
            items.flat_map(|item| item.as_object().unwrap().keys()).filter(|key| *key != "servers").count();
        assert_eq!(browser.run_script(SHOWN).await, count);
        assert_eq!(browser.find_visible("#count").await.text().await, format!("{count} operations"));
        let last = "return [...document.querySelectorAll('h2')].pop().textContent";
        assert_eq!(browser.run_script(last).await, "not implemented");
        // The page builds the details of an operation only when it is opened.
        assert_eq!(browser.run_script("return document.querySelectorAll('h4').length").await, 0);

        browser.find_visible("#filter").await.type_text("Infra-Env preflight").await;
        assert_eq!(browser.run_script(SHOWN).await, 1);
        browser.wait_until("return document.getElementById('news').textContent === '1 operation'").await;
        browser.press_keys(key::TAB).await;
        browser.press_keys(key::ENTER).await;
        let opener = browser.focused_element().await;
        assert!(opener.text().await.contains("/v2/infra-envs/{infra_env_id}/preflight"), "{opener:?}");
        browser.find_visible(".inside h4").await;
        assert_eq!(browser.run_script("return location.hash").await, "#GetInfraEnvPreflight");
        browser.press_keys(key::ENTER).await;
        assert_eq!(
            browser
                .run_script(
                    "return [...document.querySelectorAll('.inside')].some((it) => it.checkVisibility())"
                )
                .await,
            false
        );

        browser.find_visible("#filter").await.type_text("nothing like it").await;
        browser.find_visible("#nothing").await;
        assert_eq!(browser.console_messages().await, [""; 0]);
        for url in browser.new_requests().await {
            assert!(url.starts_with(&service.url("/")), "{url}");
        }
    });
}

#[test]
fn deep_link_opens_an_operation_with_its_schemas() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        let example = open_operation(&browser, &service, "RegisterInfraEnv").await;
        assert!(example.contains("/api/assisted-install/v2/infra-envs\""), "{example}");
        let text = browser.find_visible(".inside").await.text().await;
        for part in ["Authorization", "application/json", "pull_secret", "required", "full-iso, minimal-iso"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let inner = "return document.querySelector('.schema').innerText.includes('logical_nic_name')";
        assert_eq!(browser.run_script(inner).await, false, "closed schemas are not shown");
        for name in ["static_network_config", "mac_interface_map"] {
            let open = "const summary = [...document.querySelectorAll('.inside summary')] \
                          .find((it) => it.textContent.endsWith(' of NAME')); summary?.click(); return Boolean(summary)";
            browser.wait_until(&open.replace("NAME", name)).await;
        }
        browser.wait_until(inner).await;

        open_operation(&browser, &service, "v2InstallCluster").await;
        let text = browser.find_visible(".inside .notice").await.text().await;
        assert!(text.contains("501"), "{text}");
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// Commands without parameters work unchanged, and others after the user has entered the values.
#[test]
fn example_commands_run_in_a_shell() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        if require_tool("curl").is_none() {
            return;
        }
        let run = |command: &str| {
            let output = Command::new("sh").args(["-c", command]).env_remove("TOKEN").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{command}: {text} {}", String::from_utf8_lossy(&output.stderr));
            text
        };
        assert_eq!(run(&open_operation(&browser, &service, "ListInfraEnvs").await), "[]\n");
        let read = run(&open_operation(&browser, &service, "ReadNetworkFiles").await);
        assert!(read.contains("52:54:00:00:00:01"), "{read}");
        let infra_env = service.create_infra_env("it's \"quoted\" $HOME").await;
        let id = infra_env["id"].as_str().unwrap();
        // Images are saved under the names in the server's responses.
        let example = open_operation(&browser, &service, "DownloadInfraEnvImageFile").await;
        assert!(example.contains(" -OJ ") && example.ends_with("/i/$WHO/$FILE\""), "{example}");
        let example = open_operation(&browser, &service, "GetInfraEnv").await;
        assert!(example.ends_with("/infra-envs/$INFRA_ENV_ID\""), "{example}");
        browser.find_visible("[aria-label='Value of infra_env_id']").await.type_text(id).await;
        let example = browser.find_visible(".example code").await.text().await;
        let response: Value = serde_json::from_str(&run(&example)).unwrap();
        assert_eq!(response["name"], "it's \"quoted\" $HOME");
    });
}

/// No text of the document becomes markup or a command, and schemas that contain themselves do not block the page.
#[test]
fn hostile_document_is_shown_as_text() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        let markup = "<img src=x onerror=alert(1)>\"'`$(id)";
        let own = json!({"$ref": "#/components/schemas/own"});
        let list = json!({"$ref": "#/components/schemas/list"});
        let circle = json!({"$ref": "#/components/schemas/circle"});
        let all = json!({"$ref": "#/components/schemas/all"});
        let document = json!({
            "info": {"title": markup, "version": markup, "description": markup},
            "tags": [{"name": markup, "description": markup}],
            "servers": [{"url": "/$(id)`id`"}],
            "paths": {format!("/{markup}/{{id}}"): {"post": {
                "tags": [markup], "operationId": markup, "summary": markup, "description": markup,
                "security": [{"__proto__": []}],
                "parameters": [{"name": markup, "in": markup, "description": markup, "schema": {"enum": [markup]}}],
                "requestBody": {"content": {markup: {"example": markup, "schema": own}}},
                "responses": {markup: {"description": markup, "content": {markup: {"schema": list}}}},
            }}},
            "components": {"schemas": {
                "own": {
                    "type": ["object", "null"], "description": markup, "required": "x",
                    "properties": {"__proto__": own, "own": own, "list": list, "circle": circle, "all": all, markup: {"const": markup}},
                },
                "list": {"type": "array", "items": list},
                "circle": circle,
                "all": {"allOf": [all, {"oneOf": [all, own, {"type": "null"}]}]},
            }},
        });
        replace_document(&browser, &document).await;
        browser.open_url(&service.url("/docs")).await;
        browser.find_visible(".opener").await.click().await;
        let command = browser.find_visible(".example code").await.text().await;
        assert!(command.contains("\\$(id)\\`id\\`"), "{command}");
        for _ in 0..6 {
            // The first closed element is inside the previously opened element.
            let open = "[...document.querySelectorAll('details:not([open]) > summary')].slice(0, 4).forEach((it) => it.click())";
            browser.run_script(open).await;
            let is_filled = "return [...document.querySelectorAll('details[open]')].every((it) => it.childElementCount > 1)";
            browser.wait_until(is_filled).await;
        }
        let counts = "return [document.querySelectorAll('main img, main script').length, document.querySelectorAll('.schema .schema .schema .schema').length > 0]";
        assert_eq!(browser.run_script(counts).await, json!([0, true]));
        assert!(browser.visible_text().await.contains("<img src=x onerror=alert(1)>"));
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn missing_document_is_a_message() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        let script = "window.fetch = async () => { throw new TypeError('no network') }";
        browser.devtools_command("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
        browser.open_url(&service.url("/docs")).await;
        let text = browser.find_visible("#problem").await.text().await;
        assert_eq!(text, "The service does not return its API document.");
    });
}

#[test]
fn docs_are_readable_in_light_and_dark_and_on_a_phone() {
    run_test(async {
        let service = start().await;
        let Some(browser) = Browser::start().await else { return };
        open_operation(&browser, &service, "UpdateInfraEnv").await;
        let open = "document.querySelectorAll('.inside summary').forEach((it) => it.click())";
        browser.run_script(open).await;
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)] {
            browser.set_color_scheme(scheme).await;
            browser.resize_window(width, 900).await;
            let worst = browser.run_script(WORST).await;
            assert!(worst[0].as_u64().unwrap() > 200, "{worst}");
            assert!(worst[1].as_f64().unwrap() >= MIN_CONTRAST, "{scheme}, {width}: {worst}");
            let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.run_script(wide).await, 0, "{scheme}, {width}: wider than the screen");
            let name = format!("docs-{scheme}-{width}.png");
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(path, browser.screenshot().await).unwrap();
        }
        let mut count = 0;
        for element in browser
            .find_all(".inside input, .inside button, #filter, a, summary, .opener")
            .await
            .iter()
            .take(60)
        {
            let (label, role) = (element.accessible_name().await, element.role().await);
            assert!(!label.is_empty() && role != "generic", "{label:?} {role}: {element:?}");
            count += 1;
        }
        assert!(count > 30, "{count} elements were checked");
        let jumps = "const levels = [...document.querySelectorAll('h1, h2, h3, h4')] \
                       .filter((heading) => heading.checkVisibility()).map((heading) => Number(heading.tagName[1])); \
                     return [levels[0], levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)]";
        assert_eq!(browser.run_script(jumps).await, json!([1, []]));
    });
}
