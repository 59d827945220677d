//! A browser, driven as the standard of WebDriver says: JSON over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::support::{Scratch, require_tool};

/// Nothing that a page does takes a tenth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long the end of a browser is waited for.
const LONGEST_END: Duration = Duration::from_secs(10);
/// How often something is asked for that is waited for.
const PAUSE: Duration = Duration::from_millis(50);
/// What the standard calls an element in JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are no characters.
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
}

/// Several at a time take longer than one after the other.
static TURN: Mutex<()> = Mutex::const_new(());

/// A browser of a test's own, gone at its end.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    /// The browser itself.
    process: Option<Pid>,
    client: reqwest::Client,
    /// Its profile, and what it downloads.
    scratch: Scratch,
    /// What else it writes. Paths of sockets are short.
    _temporary: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// An element of the page.
#[derive(Debug)]
pub(crate) struct Element<'a> {
    browser: &'a Browser,
    id: String,
}

impl Browser {
    /// A browser, if there is one on this machine.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// The same with more options on its command line.
    pub(crate) async fn start_with(options: &[String]) -> Option<Self> {
        let (chromium, driver) = (require_tool("chromium")?, require_tool("chromedriver")?);
        let turn = TURN.lock().await;
        let (scratch, temporary) = (Scratch::new(), TempDir::with_prefix("kindling-page.").unwrap());
        let mut driver = Command::new(driver)
            .args(["--port=0", "--log-level=WARNING"])
            .env("HOME", scratch.folder())
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = address(&mut driver);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let (session, process) = (String::new(), None);
        let mut browser =
            Self { driver, address, session, process, client, scratch, _temporary: temporary, _turn: turn };
        let capabilities = json!({"capabilities": {"alwaysMatch": browser.capabilities(&chromium, options)}});
        let session = browser.send(Method::POST, "/session", &capabilities).await.unwrap();
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        let process = session["capabilities"]["goog:processID"].as_i64().unwrap();
        browser.process = Pid::from_raw(i32::try_from(process).unwrap());
        let downloads = browser.scratch.path("downloads");
        let behaviour = json!({"behavior": "allow", "downloadPath": downloads});
        browser.debug("Browser.setDownloadBehavior", behaviour).await;
        Some(browser)
    }

    fn capabilities(&self, chromium: &Path, options: &[String]) -> Value {
        let profile = format!("--user-data-dir={}", self.scratch.path("profile").display());
        let mut arguments = vec![
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-proxy-server",
            "--window-size=1280,900",
            // Whatever it would like to know of the world: it is not told.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            &profile,
        ];
        arguments.extend(options.iter().map(String::as_str));
        json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        })
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let url = format!("http://{}{path}", self.address);
        let mut request = self.client.request(method.clone(), url);
        if method == Method::POST {
            request = request.json(body);
        }
        let response = request.timeout(PATIENCE).send().await.unwrap();
        let is_success = response.status().is_success();
        let mut answer: Value = response.json().await.unwrap();
        let value = answer["value"].take();
        if is_success { Ok(value) } else { Err(value) }
    }

    /// A command for the session.
    async fn command(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send(method, &format!("{}{path}", self.session), &body).await;
        answer.unwrap_or_else(|error| panic!("{path}: {}: {}", error["error"], error["message"]))
    }

    /// A command of the protocol below, for what the standard does not know.
    pub(crate) async fn debug(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command(Method::POST, "/goog/cdp/execute", body).await
    }

    pub(crate) async fn go(&self, url: &str) {
        self.command(Method::POST, "/url", json!({"url": url})).await;
    }

    /// What a script gives that is the body of a function.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.command(Method::POST, "/execute/sync", json!({"script": script, "args": []})).await
    }

    /// The first element that a selector of CSS names, once there is one that is seen.
    pub(crate) async fn find(&self, selector: &str) -> Element<'_> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            for element in self.all(selector).await {
                if element.is_seen().await {
                    return element;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("no {selector} is seen; the page says: {}", self.text().await);
    }

    /// All elements that a selector names now.
    pub(crate) async fn all(&self, selector: &str) -> Vec<Element<'_>> {
        let body = json!({"using": "css selector", "value": selector});
        let found = self.command(Method::POST, "/elements", body).await;
        let id = |element: &Value| element[ELEMENT].as_str().unwrap().to_owned();
        found.as_array().unwrap().iter().map(|found| Element { browser: self, id: id(found) }).collect()
    }

    /// The element that keys go to.
    pub(crate) async fn active(&self) -> Element<'_> {
        let found = self.command(Method::GET, "/element/active", json!({})).await;
        Element { browser: self, id: found[ELEMENT].as_str().unwrap().to_owned() }
    }

    /// Presses keys, wherever they go to.
    pub(crate) async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.command(Method::POST, "/actions", actions).await;
    }

    /// Waits until a script gives something that is true.
    #[track_caller]
    pub(crate) fn until(&self, script: &str) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                let value = self.script(script).await;
                if !matches!(value, Value::Null | Value::Bool(false)) {
                    return value;
                }
                tokio::time::sleep(PAUSE).await;
            }
            panic!("{place}: never: {script}; the page says: {}", self.text().await);
        }
    }

    /// All that is to be read.
    pub(crate) async fn text(&self) -> String {
        self.script("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// What the console says that is bad, since it was asked last.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let entries = self.command(Method::POST, "/se/log", json!({"type": "browser"})).await;
        entries.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// The URLs of all requests, since they were asked for last.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let entries = self.command(Method::POST, "/se/log", json!({"type": "performance"})).await;
        let messages = entries.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap());
        let messages = messages.map(|text| serde_json::from_str::<Value>(text).unwrap()["message"].take());
        messages
            .filter(|message| message["method"] == "Network.requestWillBeSent")
            .map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.debug("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Has it be light or dark.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.debug("Emulation.setEmulatedMedia", features).await;
    }

    /// What is seen, as a PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let parameters = json!({"captureBeyondViewport": true});
        let shot = self.debug("Page.captureScreenshot", parameters).await;
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// The bytes of a download, once it is complete. The file is gone then: others may have the same name.
    pub(crate) async fn downloaded(&self, name: &str) -> Vec<u8> {
        let path = self.scratch.path("downloads").join(name);
        let begun = Instant::now();
        // It has its name only when it is complete.
        while !path.is_file() {
            assert!(begun.elapsed() < PATIENCE, "{name} is not downloaded");
            tokio::time::sleep(PAUSE).await;
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    /// A file to upload.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        self.scratch.write(name, text)
    }
}

impl Element<'_> {
    async fn get(&self, path: &str) -> Value {
        self.browser.command(Method::GET, &format!("/element/{}/{path}", self.id), json!({})).await
    }

    async fn is_seen(&self) -> bool {
        // It may have been replaced meanwhile.
        let path = format!("{}/element/{}/displayed", self.browser.session, self.id);
        self.browser.send(Method::GET, &path, &json!({})).await.is_ok_and(|seen| seen == true)
    }

    async fn word(&self, path: &str) -> String {
        self.get(path).await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn text(&self) -> String {
        self.word("text").await
    }

    /// The name that it has for who does not see it.
    pub(crate) async fn label(&self) -> String {
        self.word("computedlabel").await
    }

    pub(crate) async fn role(&self) -> String {
        self.word("computedrole").await
    }

    pub(crate) async fn property(&self, name: &str) -> Value {
        self.get(&format!("property/{name}")).await
    }

    pub(crate) async fn click(&self) {
        self.browser.command(Method::POST, &format!("/element/{}/click", self.id), json!({})).await;
    }

    /// Types into it. What a field for files is told is the path of a file.
    pub(crate) async fn enter(&self, text: &str) {
        let path = format!("/element/{}/value", self.id);
        self.browser.command(Method::POST, &path, json!({"text": text})).await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver knows all processes of the browser: it is asked to end them before it is ended itself.
        if self.end_session().is_err()
            && let Some(process) = self.process
        {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// Without the runtime, which may be ending.
    fn end_session(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LONGEST_END))?;
        write!(
            stream,
            "DELETE {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.session, self.address
        )?;
        stream.read_exact(&mut [0; 16])
    }
}

/// Where a driver listens: it says so.
fn address(driver: &mut Child) -> String {
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return format!("127.0.0.1:{}", port.trim_end_matches('.'));
        }
    }
    panic!("the driver does not start")
}
