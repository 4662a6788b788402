"""Client of Google's REST APIs: calls and quotas, error mapping, access tokens, paging, Cloud SQL operations.

The kinds of Google and the composition root import it. google-auth is loaded only when a token is needed.
Imports clients.http, clients.ratelimit, core and errors. Start with `client.GoogleClient`.
"""
