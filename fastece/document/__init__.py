"""Documents: what results look like as text, Markdown, HTML, JSON and data frames."""
