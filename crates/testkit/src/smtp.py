"""A mail server. Prints a line of JSON for each mail that it takes, and does what its settings say.

Usage: smtp.py PORT SETTINGS, where SETTINGS is JSON with: tls ("none", "implicit", "starttls"), certificate, key,
user, password, behaviour ("take", "refuse", "hang").
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

port, settings = int(sys.argv[1]), json.loads(sys.argv[2])


class Take:
    async def handle_DATA(self, server, session, envelope):
        if settings["behaviour"] == "hang":
            await asyncio.sleep(3600)
        if settings["behaviour"] == "refuse":
            return "554 not from you"
        login = session.auth_data
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "data": envelope.content.decode("utf-8"),
            "tls": server.transport.get_extra_info("sslcontext") is not None,
            "user": login.login.decode() if login else None,
        }
        print(json.dumps(mail), flush=True)
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (
        settings["user"].encode(),
        settings["password"].encode(),
    )
    return AuthResult(success=right, handled=right, auth_data=data if right else None)


async def main():
    context = None
    if settings["tls"] != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings["certificate"], settings["key"])
    needs_login = settings["user"] is not None

    def serve():
        return SMTP(
            Take(),
            authenticator=authenticate if needs_login else None,
            auth_required=needs_login,
            auth_require_tls=False,
            tls_context=context if settings["tls"] == "starttls" else None,
            require_starttls=settings["tls"] == "starttls",
            enable_SMTPUTF8=True,
            hostname="localhost",
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        serve, "127.0.0.1", port, ssl=context if settings["tls"] == "implicit" else None
    )
    print("serving", flush=True)
    await server.serve_forever()


asyncio.run(main())
