"""Documents: results as text, Markdown, HTML, JSON and data frames."""
