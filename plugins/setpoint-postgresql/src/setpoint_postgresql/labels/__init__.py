"""Security labels of objects: `labelled_objects` has the objects that can have one, `security_labels` the kind."""
