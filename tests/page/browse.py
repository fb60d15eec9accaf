#!/usr/bin/env python3
"""Opens a page in headless Chromium and asks it questions.

usage: browse.py BROWSER URL [--until EXPRESSION] [--picture FILE.png] [--size WxH] [EXPRESSION...]

Waits until the expression is true (30 s at most), then prints the value of each expression as JSON, one a line, and
last the addresses that the page asked for, under "requests". Talks to the browser over a pipe, with nothing but
Python's own library.
"""
import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, path, folder):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                   "--disable-background-networking", f"--user-data-dir={folder}", "about:blank"]

        def wire():  # the browser reads from 3 and writes to 4
            low, high = os.dup(to_read), os.dup(to_write)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=wire, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.pending, self.number, self.requests, self.session = b"", 0, [], None

    def read(self):
        while b"\0" not in self.pending:
            got = os.read(self.from_browser, 1 << 20)
            if not got:
                sys.exit("the browser has ended")
            self.pending += got
        message, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            return {"failed": found["exceptionDetails"].get("exception", {}).get("description", "")}
        return found["result"].get("value")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("browser")
    parser.add_argument("url")
    parser.add_argument("--until", default="true")
    parser.add_argument("--picture")
    parser.add_argument("--size", default="1200x900")
    parser.add_argument("expressions", nargs="*")
    args = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(args.browser, folder)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        width, height = map(int, args.size.split("x"))
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        browser.call("Network.enable")
        browser.call("Page.navigate", url=args.url)
        end = time.time() + 30
        while time.time() < end and browser.evaluate(f"document.readyState === 'complete' && ({args.until})") is not True:
            time.sleep(0.05)
        for expression in args.expressions:
            print(json.dumps(browser.evaluate(expression)))
        print(json.dumps({"requests": browser.requests}))
        if args.picture:
            picture = browser.call("Page.captureScreenshot", format="png")["data"]
            with open(args.picture, "wb") as file:
                file.write(base64.b64decode(picture))
        browser.process.kill()
        browser.process.wait()


if __name__ == "__main__":
    main()
