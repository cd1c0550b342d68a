// What a turn may do. A message that joins it can only take rights away.

import { narrowed, type Rights } from '../core/rights.ts';

export class TurnRights {
  #current: Rights;

  constructor(rights: Rights) {
    this.#current = rights;
  }

  get current(): Rights {
    return this.#current;
  }

  narrow(rights: Rights): void {
    this.#current = narrowed(this.#current, rights);
  }
}
