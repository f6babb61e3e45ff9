"""Letters to the people a decision is about, from one template: as HTML, as text and as documents."""
