// All clients that are not linked yet, found by what a phone sees of them.

import type { LinkedAccount } from './account.ts';
import type { Connection } from './connection.ts';
import type { ClientHello } from './noise-responder.ts';
import { readQr } from './qr-text.ts';
import { Registration, type RegistrationDeps } from './registration.ts';

export class Registrations {
  readonly #deps: RegistrationDeps;
  #known: readonly Registration[] = [];

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
  }

  begin(connection: Connection, hello: ClientHello): Registration {
    const begun = new Registration(this.#deps, connection, hello);
    this.#known = [...this.#known.filter(({ isOpen }) => isOpen), begun];
    return begun;
  }

  /** The client that asked for a code for this account and is still there. */
  askingFor(account: LinkedAccount): Registration | undefined {
    return this.#known.findLast(({ isOpen, asksFor }) => isOpen && asksFor === account);
  }

  /** @throws where the QR is none, or of a client that is gone */
  async scan(account: LinkedAccount, text: string): Promise<void> {
    const qr = readQr(text);
    const shown = this.#known.find(
      ({ isOpen, references }) => isOpen && references.includes(qr.reference),
    );
    if (shown === undefined) throw new Error('the QR code is no longer valid');
    await shown.scanned(account, qr);
  }

  /** Waits for a client to ask for the code: it shows the code before the server knows. */
  async typeCode(account: LinkedAccount, code: string, timeoutMs: number): Promise<void> {
    const asking = await account.until(
      () => this.askingFor(account),
      'a client asks for a code',
      timeoutMs,
    );
    await asking.codeTyped(code.replace(/[\s-]/g, '').toUpperCase());
  }
}
