"""Cloud mode: how it is constructed and how it fails. Its operations are those of the client engine on a server."""

from __future__ import annotations

import pytest

from pipeline.chroma import ChromaConfig, fingerprint, open_store
from pipeline.chroma.cloud import CloudBackend
from serve.errors import OperatorError, UnreachableError
from tests.chroma.support import EMBEDDER, free_port


def cloud(**values):
    return ChromaConfig(
        **{"mode": "cloud", "namespace": "mine", "host": "127.0.0.1", "token": "s3cret", "timeout": 2.0, **values}
    )


@pytest.mark.parametrize("use", [open_store, fingerprint])
def test_a_cloud_that_cannot_be_reached_is_unreachable(use):
    port = free_port()
    with pytest.raises(UnreachableError) as caught:
        use(cloud(port=port, tenant="t", database="d"), EMBEDDER)
    assert caught.value.where == f"http://127.0.0.1:{port}"


def test_the_key_goes_in_the_clouds_own_header_and_never_into_the_error(answering):
    port, asked = answering(401, "no")
    with pytest.raises(OperatorError, match="refuses the credentials") as caught:
        open_store(cloud(port=port), EMBEDDER)
    assert asked[0][1]["X-chroma-token"] == "s3cret"
    assert "s3cret" not in str(caught.value)


@pytest.mark.requirement("R127")
def test_the_clouds_client_is_built_from_the_settings(server):
    """The cloud speaks the server's protocol, so a local server is enough to see a client constructed."""
    engine = CloudBackend(cloud(port=server.port, tenant="default_tenant", database="default_database")).open()
    client = engine._client
    settings = client._system.settings
    assert (client.tenant, client.database) == ("default_tenant", "default_database")
    assert (settings.chroma_server_host, settings.chroma_server_http_port) == ("127.0.0.1", server.port)
    assert settings.anonymized_telemetry is False
    assert {session.headers["x-chroma-token"] for session in engine._sessions} == {"s3cret"}
    assert {session.timeout.read for session in engine._sessions} == {2.0}
    assert engine._configuration == {"spann": {"space": "cosine"}}
    engine.close()


def test_without_tenant_and_database_there_is_no_cheap_check():
    assert fingerprint(cloud(port=free_port()), EMBEDDER) is None
