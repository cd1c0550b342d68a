// The parts of the account login: the picture, its instructions, a field for the number, the code.

import { copyButton } from './code-block.js';
import { element } from './element.js';
import { t } from './texts.js';

const CODE_LENGTH = 8;

export function picture(image) {
  return element('img', {
    src: image,
    className: 'login-qr',
    alt: t`QR code to scan with the phone`,
    width: 288,
    height: 288,
  });
}

export function instructions(label) {
  return element(
    'ol',
    { className: 'login-steps' },
    element('li', {}, t`Open ${label} on the phone whose account you link.`),
    element(
      'li',
      {},
      t`In its settings (Android: in its menu), choose `,
      element('b', {}, t`Linked devices › Link a device`),
      '.',
    ),
    element('li', {}, t`Point the phone at this code.`),
  );
}

/** Eight characters in two groups, as the phone's field shows them. */
export function typed({ code }) {
  const half = CODE_LENGTH / 2;
  const isLong = code.length === CODE_LENGTH;
  const text = isLong ? `${code.slice(0, half)}-${code.slice(half)}` : code;
  const shown = element('output', { className: 'login-typed' }, text);
  const spelled = [...code].join(' ');
  shown.setAttribute('aria-label', spelled);
  return [
    element(
      'p',
      {},
      t`On the phone, choose `,
      element('b', {}, t`Link with phone number instead`),
      t` and type:`,
    ),
    element(
      'div',
      { className: 'login-typed-row' },
      shown,
      copyButton(t`Copy the code`, () => code, shown),
    ),
  ];
}

export function numberForm(onNumber) {
  const field = element('input', {
    type: 'tel',
    id: 'login-number',
    autocomplete: 'off',
    placeholder: '+49 151 1234567',
    inputMode: 'tel',
  });
  const problem = element('p', { className: 'problem', role: 'alert' });
  const submit = (event) => {
    event.preventDefault();
    const digits = field.value.replace(/[\s./()-]/g, '').replace(/^(?:\+|00)/, '');
    const isNumber = /^[1-9]\d{7,14}$/.test(digits);
    problem.textContent = isNumber ? '' : t`Write it with its country code, like +49 151 1234567.`;
    if (isNumber) onNumber(digits);
  };
  const node = element(
    'form',
    { className: 'login-number', noValidate: true, on: { submit } },
    element(
      'label',
      { htmlFor: 'login-number' },
      t`No camera? Enter the account’s phone number to get a code to type:`,
    ),
    element(
      'div',
      { className: 'login-number-row' },
      field,
      button(t`Get a code`, undefined, '', 'submit'),
    ),
    problem,
  );
  return { node };
}

export function button(text, onClick, className = '', type = 'button') {
  const on = onClick === undefined ? {} : { click: onClick };
  return element('button', { type, className: `button ${className}`.trim(), on }, text);
}

export function spinner() {
  return element('span', { className: 'spinner' });
}
