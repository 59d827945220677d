//! A browser that the tests control with WebDriver: JSON over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::support::{Scratch, require_tool};

/// More than ten times the duration of anything on the page.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time until the browser exits.
const LONGEST_END: Duration = Duration::from_secs(10);
/// Poll interval.
const PAUSE: Duration = Duration::from_millis(50);
/// The JSON key of element ids, from the WebDriver standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Codes of special keys.
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
}

/// A limit on the number of tests that use a browser at a time. On two processors, more concurrent browsers take
/// longer.
static TURNS: Semaphore = Semaphore::const_new(2);
/// Browsers that no test uses at the moment. They run while a test uses a browser or waits for one.
static IDLE: Mutex<Vec<BrowserProcess>> = Mutex::new(Vec::new());
/// The number of tests that use a browser or wait for one.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// A browser and the driver that controls it. Both end when the value is dropped.
#[derive(Debug)]
struct BrowserProcess {
    driver: Child,
    address: String,
    session: String,
    /// The browser process.
    process: Option<Pid>,
    /// The folder with the browser's profile.
    scratch: Scratch,
    /// The folder with the browser's other files. It has a short path, because paths of sockets must be short.
    _temporary: TempDir,
}

/// A browser window for one test, without data of other tests.
#[derive(Debug)]
pub(crate) struct Browser {
    address: String,
    session: String,
    client: reqwest::Client,
    /// Files to upload, and downloads.
    scratch: Scratch,
    /// `None` only during the drop.
    process: Option<BrowserProcess>,
    /// Whether other tests must not use this browser.
    is_private: bool,
    _turn: SemaphorePermit<'static>,
}

/// An element of the page.
#[derive(Debug)]
pub(crate) struct PageElement<'a> {
    browser: &'a Browser,
    id: String,
}

impl BrowserProcess {
    /// Starts a browser with further command-line options; `None` if no browser is installed.
    async fn start(options: &[String]) -> Option<Self> {
        let (chromium, driver) = (require_tool("chromium")?, require_tool("chromedriver")?);
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
        let address = driver_address(&mut driver);
        let (session, process) = (String::new(), None);
        let mut browser = Self { driver, address, session, process, scratch, _temporary: temporary };
        let capabilities = json!({"capabilities": {"alwaysMatch": browser.capabilities(&chromium, options)}});
        let url = format!("http://{}/session", browser.address);
        let session = send_to_driver(http_client().post(url).json(&capabilities)).await.unwrap();
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        let process = session["capabilities"]["goog:processID"].as_i64().unwrap();
        browser.process = Pid::from_raw(i32::try_from(process).unwrap());
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
            // Disables all background requests of the browser.
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
}

fn http_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Returns the value of a driver's response, or of its error.
async fn send_to_driver(request: reqwest::RequestBuilder) -> Result<Value, Value> {
    let response = request.timeout(PATIENCE).send().await.unwrap();
    let is_success = response.status().is_success();
    let mut answer: Value = response.json().await.unwrap();
    let value = answer["value"].take();
    if is_success { Ok(value) } else { Err(value) }
}

impl Browser {
    /// Opens a window in a shared browser; `None` if no browser is installed.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with_options(&[]).await
    }

    /// Starts a browser with further command-line options, only for this test.
    pub(crate) async fn start_with_options(options: &[String]) -> Option<Self> {
        USERS.fetch_add(1, Ordering::SeqCst);
        let turn = TURNS.acquire().await.unwrap();
        let is_private = !options.is_empty();
        let idle = if is_private { None } else { IDLE.lock().unwrap().pop() };
        let process = match idle {
            Some(process) => Some(process),
            None => BrowserProcess::start(options).await,
        };
        let Some(process) = process else {
            USERS.fetch_sub(1, Ordering::SeqCst);
            return None;
        };
        let (address, session) = (process.address.clone(), process.session.clone());
        let (client, scratch, process) = (http_client(), Scratch::new(), Some(process));
        let browser = Self { address, session, client, scratch, process, is_private, _turn: turn };
        browser.open_window().await;
        Some(browser)
    }

    /// Opens a window with default settings, closes the window of the previous test, and removes its data.
    async fn open_window(&self) {
        let window = self.session_command(Method::POST, "/window/new", json!({"type": "tab"})).await;
        self.session_command(Method::DELETE, "/window", json!({})).await;
        self.session_command(Method::POST, "/window", json!({"handle": window["handle"]})).await;
        let everything = json!({"origin": "*", "storageTypes": "all"});
        self.devtools_command("Storage.clearDataForOrigin", everything).await;
        self.devtools_command("Network.clearBrowserCache", json!({})).await;
        self.devtools_command("Browser.resetPermissions", json!({})).await;
        let downloads = self.scratch.path("downloads");
        let behaviour = json!({"behavior": "allow", "downloadPath": downloads});
        self.devtools_command("Browser.setDownloadBehavior", behaviour).await;
        // Discards the messages of the previous test.
        self.console_messages().await;
        self.new_requests().await;
    }

    async fn send_to_driver(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let mut request = self.client.request(method.clone(), format!("http://{}{path}", self.address));
        if method == Method::POST {
            request = request.json(body);
        }
        send_to_driver(request).await
    }

    /// Runs a command of the session.
    async fn session_command(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send_to_driver(method, &format!("{}{path}", self.session), &body).await;
        answer.unwrap_or_else(|error| panic!("{path}: {}: {}", error["error"], error["message"]))
    }

    /// Runs a DevTools command, for functions that WebDriver lacks.
    pub(crate) async fn devtools_command(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.session_command(Method::POST, "/goog/cdp/execute", body).await
    }

    pub(crate) async fn open_url(&self, url: &str) {
        self.session_command(Method::POST, "/url", json!({"url": url})).await;
    }

    /// Returns the result of a script, which is a function body.
    pub(crate) async fn run_script(&self, script: &str) -> Value {
        self.session_command(Method::POST, "/execute/sync", json!({"script": script, "args": []})).await
    }

    /// Waits for a visible element that matches a CSS selector, and returns the first one.
    pub(crate) async fn find_visible(&self, selector: &str) -> PageElement<'_> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            for element in self.find_all(selector).await {
                if element.is_visible().await {
                    return element;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{selector} is not visible; the page shows: {}", self.visible_text().await);
    }

    /// Returns all elements that match a selector at the moment.
    pub(crate) async fn find_all(&self, selector: &str) -> Vec<PageElement<'_>> {
        let body = json!({"using": "css selector", "value": selector});
        let elements = self.session_command(Method::POST, "/elements", body).await;
        let id = |element: &Value| element[ELEMENT].as_str().unwrap().to_owned();
        elements
            .as_array()
            .unwrap()
            .iter()
            .map(|element| PageElement { browser: self, id: id(element) })
            .collect()
    }

    pub(crate) async fn focused_element(&self) -> PageElement<'_> {
        let element = self.session_command(Method::GET, "/element/active", json!({})).await;
        PageElement { browser: self, id: element[ELEMENT].as_str().unwrap().to_owned() }
    }

    /// Presses keys on the focused element.
    pub(crate) async fn press_keys(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.session_command(Method::POST, "/actions", actions).await;
    }

    /// Waits until a script returns a truthy value.
    #[track_caller]
    pub(crate) fn wait_until(&self, script: &str) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let start = Instant::now();
            while start.elapsed() < PATIENCE {
                let value = self.run_script(script).await;
                if !matches!(value, Value::Null | Value::Bool(false)) {
                    return value;
                }
                tokio::time::sleep(PAUSE).await;
            }
            panic!("{place}: never true: {script}; the page shows: {}", self.visible_text().await);
        }
    }

    /// Returns all visible text.
    pub(crate) async fn visible_text(&self) -> String {
        self.run_script("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Returns new warnings and errors of the console.
    pub(crate) async fn console_messages(&self) -> Vec<String> {
        let entries = self.session_command(Method::POST, "/se/log", json!({"type": "browser"})).await;
        entries.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// Returns the messages of the console after a deletion. The page may have requested a part of the infra-env just
    /// before its deletion, and the browser reports the status 404.
    pub(crate) async fn console_messages_after_deletion(&self) -> Vec<String> {
        let mut messages = self.console_messages().await;
        messages.retain(|message| !message.contains("the server responded with a status of 404 (Not Found)"));
        messages
    }

    /// Returns the URLs of all new requests.
    pub(crate) async fn new_requests(&self) -> Vec<String> {
        let entries = self.session_command(Method::POST, "/se/log", json!({"type": "performance"})).await;
        let messages = entries.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap());
        let messages = messages.map(|text| serde_json::from_str::<Value>(text).unwrap()["message"].take());
        messages
            .filter(|message| message["method"] == "Network.requestWillBeSent")
            .map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn resize_window(&self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools_command("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Selects the light or dark colour scheme.
    pub(crate) async fn set_color_scheme(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools_command("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns a screenshot as PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let parameters = json!({"captureBeyondViewport": true});
        let shot = self.devtools_command("Page.captureScreenshot", parameters).await;
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// Returns the bytes of a download, once it is complete. Removes the file, because other downloads may have the
    /// same name.
    pub(crate) async fn take_download(&self, name: &str) -> Vec<u8> {
        let path = self.scratch.path("downloads").join(name);
        let start = Instant::now();
        // A download gets its final name only when it is complete.
        while !path.is_file() {
            assert!(start.elapsed() < PATIENCE, "{name} is not downloaded");
            tokio::time::sleep(PAUSE).await;
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    /// Writes a file to upload.
    pub(crate) fn file_to_upload(&self, name: &str, text: &str) -> PathBuf {
        self.scratch.write(name, text)
    }
}

impl PageElement<'_> {
    async fn get(&self, path: &str) -> Value {
        self.browser.session_command(Method::GET, &format!("/element/{}/{path}", self.id), json!({})).await
    }

    async fn is_visible(&self) -> bool {
        // The page may have replaced the element meanwhile.
        let path = format!("{}/element/{}/displayed", self.browser.session, self.id);
        self.browser
            .send_to_driver(Method::GET, &path, &json!({}))
            .await
            .is_ok_and(|displayed| displayed == true)
    }

    async fn get_text_at(&self, path: &str) -> String {
        self.get(path).await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn text(&self) -> String {
        self.get_text_at("text").await
    }

    /// Returns the element's accessible name.
    pub(crate) async fn accessible_name(&self) -> String {
        self.get_text_at("computedlabel").await
    }

    pub(crate) async fn role(&self) -> String {
        self.get_text_at("computedrole").await
    }

    pub(crate) async fn property(&self, name: &str) -> Value {
        self.get(&format!("property/{name}")).await
    }

    pub(crate) async fn click(&self) {
        self.browser.session_command(Method::POST, &format!("/element/{}/click", self.id), json!({})).await;
    }

    /// Types into the element. For a file input, the text is the path of a file.
    pub(crate) async fn type_text(&self, text: &str) {
        let path = format!("/element/{}/value", self.id);
        self.browser.session_command(Method::POST, &path, json!({"text": text})).await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failed test may leave the browser in any state.
        let process = self.process.take().filter(|_| !self.is_private && !std::thread::panicking());
        IDLE.lock().unwrap().extend(process);
        if USERS.fetch_sub(1, Ordering::SeqCst) == 1 {
            drop(std::mem::take(&mut *IDLE.lock().unwrap()));
        }
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // Close the session first: only the driver can end all processes of the browser.
        if self.end_session().is_err()
            && let Some(process) = self.process
        {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl BrowserProcess {
    /// Sends the request without the runtime, which may be shutting down.
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

/// Returns the address that a driver prints.
fn driver_address(driver: &mut Child) -> String {
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return format!("127.0.0.1:{}", port.trim_end_matches('.'));
        }
    }
    panic!("the driver does not start")
}
