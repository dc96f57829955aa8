"""Which formats can a report be written in?"""

FORMATS = ("text", "concise", "json", "sarif", "github", "junit", "markdown", "html")
