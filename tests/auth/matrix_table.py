"""What each credential gets at each verb of each route.

`400` is for whoever is let in and then says something that the route does not know: nothing is
changed by asking. Of the routes that name something, an agent token is shown something of its own,
`wrong` something else; `read` may read all history and the notebooks in its reach, and no more;
`rate` has used up its executions for this minute; `look` may look into the kernels of notebooks.
"""

from __future__ import annotations

from typing import Final

SHOWN: Final = ("token", "cookie", "xsrf", "right", "read", "wrong", "rate", "look")
"""Whose are the columns: a person's token, their cookie without and with XSRF, agent tokens."""

TABLE: Final = """
GET    status                                   200 200 200   200 200 200 200 200
GET    sessions                                 200 200 200   200 200 200 200 200
POST   sessions                                 400 403 400   400 400 404 400 400
GET    sessions/{session_id}                    200 200 200   200 200 404 200 200
POST   sessions/{session_id}/close              400 403 400   400 403 404 400 400
POST   sessions/{session_id}/interrupt          400 403 400   400 403 404 400 400
POST   sessions/{session_id}/restart            400 403 400   400 403 404 400 403
GET    sessions/{session_id}/executions         200 200 200   200 200 404 200 200
POST   sessions/{session_id}/executions         400 403 400   400 403 404 429 400
GET    sessions/{session_id}/notebook           200 200 200   200 200 404 200 200
POST   sessions/{session_id}/notebook/share     400 403 400   400 403 404 400 403
GET    sessions/{session_id}/requirements       200 200 200   200 200 404 200 200
GET    sessions/{session_id}/journal            200 200 200   200 200 404 200 200
GET    sessions/{session_id}/events             200 200 200   200 200 404 200 200
GET    sessions/{session_id}/guide              200 200 200   200 200 404 200 200
GET    sessions/{session_id}/variables          200 200 200   200 403 404 200 200
GET    sessions/{session_id}/packages           200 200 200   200 403 404 200 200
GET    sessions/{session_id}/files              200 200 200   200 403 404 403 403
GET    sessions/{session_id}/files/{path}       200 200 200   200 403 404 403 403
PUT    sessions/{session_id}/files/{path}       400 403 400   400 403 404 403 403
DELETE sessions/{session_id}/files/{path}       400 403 400   400 403 404 403 403
GET    executions/{execution_id}                200 200 200   200 200 404 200 200
GET    executions/{execution_id}/stream         200 200 200   200 200 404 200 200
GET    executions/{execution_id}/text           200 200 200   200 200 404 200 200
POST   sessions/{session_id}/steps              400 403 400   400 403 404 400 403
POST   executions/{execution_id}/input          400 403 400   400 403 404 400 403
POST   executions/{execution_id}/cancel         400 403 400   400 403 404 400 400
GET    blobs/{digest}                           200 200 200   200 200 404 200 200
POST   erasures                                 400 403 400   403 403 403 403 403
POST   retention                                400 403 400   403 403 403 403 403
POST   accepted-breaks                          400 403 400   403 403 403 403 403
GET    search                                   200 200 200   200 200 200 200 200
GET    images                                   200 200 200   200 200 200 200 200
GET    notebooks                                200 200 200   200 200 200 200 200
GET    notebooks/{path}/cells                   200 200 200   200 200 404 200 200
PATCH  notebooks/{path}/cells                   400 403 400   400 403 404 400 403
GET    proposals                                200 200 200   200 200 200 200 200
POST   sessions/{session_id}/proposals/keep     400 403 400   403 403 403 403 403
POST   sessions/{session_id}/proposals/reject   400 403 400   403 403 403 403 403
POST   sessions/{session_id}/proposals/undo     400 403 400   403 403 403 403 403
POST   sessions/{session_id}/round/undo         400 403 400   403 403 403 403 403
POST   sessions/{session_id}/round/redo         400 403 400   403 403 403 403 403
POST   executions/{execution_id}/accept         400 403 400   403 403 403 403 403
POST   sessions/{session_id}/accept             400 403 400   403 403 403 403 403
PUT    executions/{execution_id}/review         400 403 400   403 403 403 403 403
GET    approvals                                200 200 200   200 200 200 200 200
PUT    approvals/policy                         400 403 400   403 403 403 403 403
PUT    approvals/pause                          400 403 400   403 403 403 403 403
GET    executions/{execution_id}/preview        409 409 409   403 403 403 403 403
POST   executions/{execution_id}/approve        400 403 400   403 403 403 403 403
POST   executions/{execution_id}/reject         400 403 400   403 403 403 403 403
GET    kernels/{kernel_id}/checkpoints          200 200 200   403 403 403 403 403
GET    kernels/{kernel_id}/runs                 200 200 200   403 403 403 403 403
PUT    kernels/{kernel_id}/checkpoints          400 403 400   403 403 403 403 403
POST   executions/{execution_id}/undo           400 403 400   403 403 404 403 403
DELETE sessions/{session_id}/grant              200 403 200   403 403 403 403 403
POST   sessions/{session_id}/restore            400 403 400   400 403 404 400 403
GET    tokens                                   200 200 200   403 403 403 403 403
POST   tokens                                   400 403 400   403 403 403 403 403
DELETE tokens/{token_id}                        404 403 404   403 403 403 403 403
POST   tokens/{token_id}/scopes                 400 403 400   403 403 403 403 403
POST   unlock                                   400 403 400   403 403 403 403 403
POST   aca/code/execute                         400 403 400   400 403 400 403 403
POST   aca/files/upload                         400 403 400   400 403 400 403 403
GET    aca/files                                400 400 400   400 403 400 403 403
GET    aca/files/content/{filename}             400 400 400   400 403 400 403 403
GET    openapi.json                             200 200 200   200 200 200 200 200
"""

EXPECTED: Final[dict[str, dict[str, int]]] = {
    f"{method} {template}": dict(zip(SHOWN, map(int, statuses), strict=True))
    for method, template, *statuses in (line.split() for line in TABLE.strip().splitlines())
}

JUPYTERS_OWN: Final = """
GET    api/contents
GET    api/contents/reports/a.ipynb
PUT    api/contents/new.txt
POST   api/contents
PATCH  api/contents/reports/a.ipynb
DELETE api/contents/reports/a.ipynb
GET    api/contents/reports/a.ipynb/checkpoints
POST   api/contents/reports/a.ipynb/checkpoints
GET    api/kernels
POST   api/kernels
GET    api/kernels/{kernel_id}
DELETE api/kernels/{kernel_id}
POST   api/kernels/{kernel_id}/interrupt
POST   api/kernels/{kernel_id}/restart
GET    api/kernels/{kernel_id}/channels
GET    api/sessions
POST   api/sessions
GET    api/sessions/{kernel_id}
PATCH  api/sessions/{kernel_id}
DELETE api/sessions/{kernel_id}
GET    api/kernelspecs
GET    api/kernelspecs/python3
GET    api/status
GET    api/me
PATCH  api/me
GET    api/config/notebook
PUT    api/config/notebook
GET    api/terminals
POST   api/terminals
GET    api/nbconvert
POST   api/events
GET    api/events/subscribe
POST   api/shutdown
GET    files/reports/a.ipynb
GET    nbconvert/html/reports/a.ipynb
"""
"""Routes of Jupyter Server that need a credential: an agent token is none."""
