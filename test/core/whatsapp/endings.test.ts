import { describe, expect, it } from 'vitest';
import {
  judgeEnding,
  type WhatsAppCause,
  type WhatsAppEnding,
} from '../../../src/channels/whatsapp/rules/endings.ts';

const closed = (code: number, message = 'Connection Failure'): WhatsAppCause => ({
  kind: 'closed',
  code,
  message,
});
const ending = (cause: WhatsAppCause, more: Partial<WhatsAppEnding> = {}): WhatsAppEnding => ({
  cause,
  phase: 'open',
  isPaired: false,
  mayRollBack: false,
  ...more,
});
const kindOf = (cause: WhatsAppCause, more: Partial<WhatsAppEnding> = {}) => {
  const verdict = judgeEnding(ending(cause, more));
  return verdict.kind === 'wait' ? verdict.pace : verdict.kind;
};

describe('the end of a linked connection', () => {
  it.each([
    [515, 'reconnect'],
    [428, 'backoff'],
    [408, 'backoff'],
    [400, 'backoff'],
    [500, 'backoff'],
    [503, 'long_backoff'],
    [440, 'stop'],
    [403, 'stop'],
    [402, 'stop'],
    [406, 'stop'],
    [405, 'stop'],
    [409, 'stop'],
    [411, 'stop'],
    [401, 'relink'],
    [418, 'backoff'],
    [599, 'backoff'],
  ] as const)('with code %i means %s, while opening as well as open', (code, kind) => {
    expect(kindOf(closed(code), { phase: 'open' })).toBe(kind);
    expect(kindOf(closed(code), { phase: 'opening' })).toBe(kind);
  });

  it.each([400, 401, 500])('with code %i goes back once where nothing opened since', (code) => {
    const more = { phase: 'opening', mayRollBack: true } as const;
    expect(kindOf(closed(code), more)).toBe('roll_back');
    expect(kindOf(closed(code), { ...more, mayRollBack: false })).not.toBe('roll_back');
    expect(kindOf(closed(code), { ...more, phase: 'open' })).not.toBe('roll_back');
  });

  it.each([403, 405, 428, 440, 503, 515])('with code %i never blames the credentials', (code) => {
    expect(kindOf(closed(code), { phase: 'opening', mayRollBack: true })).not.toBe('roll_back');
  });

  it.each([401, 403, 405, 440, 407])(
    'never takes HTTP %i of a proxy for a word of WhatsApp’s',
    (code) => {
      const message = `WebSocket Error (Unexpected server response: ${code})`;
      const verdict = judgeEnding(
        ending(closed(code, message), { phase: 'opening', mayRollBack: true }),
      );
      expect(verdict).toEqual({
        kind: 'wait',
        pace: 'backoff',
        reason: `WhatsApp cannot be reached (HTTP ${code})`,
      });
    },
  );

  it('waits when the network is away, and says so without the vendor’s words', () => {
    const cause = closed(408, 'WebSocket Error (getaddrinfo ENOTFOUND web.whatsapp.com)');
    const verdict = judgeEnding(ending(cause, { phase: 'opening' }));
    expect(verdict).toEqual({
      kind: 'wait',
      pace: 'backoff',
      reason: 'WhatsApp cannot be reached',
    });
  });

  it('tells the owner of a failed handshake at once and of an unknown ending when it repeats', () => {
    expect(judgeEnding(ending(closed(400)))).toMatchObject({ alertAfter: 1 });
    expect(judgeEnding(ending(closed(500)))).toMatchObject({ alertAfter: 5 });
    expect(judgeEnding(ending(closed(428)))).not.toHaveProperty('alertAfter');
  });

  it.each(['silent', 'stalled', 'overdue', 'unsaved'] as const)(
    'by our own hand (%s) is followed by another try',
    (kind) => {
      expect(kindOf({ kind })).toBe('backoff');
    },
  );

  it('says what to do wherever only a person can go on', () => {
    for (const code of [401, 402, 403, 405, 440]) {
      const verdict = judgeEnding(ending(closed(code)));
      if (!('remedy' in verdict)) throw new Error(`no remedy for ${code}`);
      expect(verdict.remedy).toMatch(/nanobot|restart/);
      expect(verdict.reason).toContain(String(code));
    }
  });
});

describe('the end of a pairing', () => {
  it.each([
    [closed(408, 'QR refs attempts ended'), 'give_up'],
    [closed(408, 'Connection was lost'), 'backoff'],
    [closed(428), 'backoff'],
    [closed(400), 'backoff'],
    [closed(503), 'backoff'],
    [closed(515), 'reconnect'],
    [closed(401), 'give_up'],
    [closed(403), 'give_up'],
    [closed(405), 'give_up'],
    [closed(440), 'give_up'],
    [closed(500, 'Invalid account signature'), 'backoff'],
    [closed(418), 'give_up'],
    [closed(500, 'WebSocket Error (read ECONNRESET)'), 'backoff'],
    [{ kind: 'overdue' }, 'give_up'],
    [{ kind: 'silent' }, 'backoff'],
  ] as const)('%o means %s before the phone has confirmed', (cause, kind) => {
    expect(kindOf(cause, { phase: 'pairing' })).toBe(kind);
  });

  it.each([
    [515, 'reconnect'],
    [428, 'backoff'],
    [503, 'long_backoff'],
    [401, 'relink'],
    [500, 'backoff'],
  ] as const)('with code %i means %s once the phone has confirmed', (code, kind) => {
    expect(kindOf(closed(code), { phase: 'pairing', isPaired: true })).toBe(kind);
  });

  it('goes on when the server then says nothing more', () => {
    expect(kindOf({ kind: 'overdue' }, { phase: 'pairing', isPaired: true })).toBe('backoff');
  });

  it('gives the same reason for an outdated version as a linked connection does', () => {
    const linked = judgeEnding(ending(closed(405)));
    const pairing = judgeEnding(ending(closed(405), { phase: 'pairing' }));
    expect(pairing).toEqual({ ...linked, kind: 'give_up' });
  });
});
