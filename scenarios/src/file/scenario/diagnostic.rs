//! Mistakes in scenario files as miette's diagnostics, with an excerpt of the file.

use std::fmt::Display;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use super::error::{ScenarioError, Text};

impl Diagnostic for ScenarioError {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new("scenario"))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = ScenarioError::help(self)?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|(text, _)| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.excerpt.as_ref()?;
        let label = LabeledSpan::new(Some("here".to_owned()), span.start, span.len());
        Some(Box::new(std::iter::once(label)))
    }
}

impl SourceCode for Text {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, lines_before, lines_after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.file.clone(),
            read.data(),
            *read.span(),
            read.line(),
            read.column(),
            read.line_count(),
        )))
    }
}
