// What forms and cards are made of: what is typed and chosen, buttons, and the lines that say what came of
// them.

import type { Signal } from '@preact/signals';
import type { ButtonHTMLAttributes, FormHTMLAttributes, HTMLAttributes, Ref } from 'preact';

type FormProps = Omit<FormHTMLAttributes, 'onSubmit'> & {
  readonly submit: (typed: FormData) => unknown;
  readonly ref?: Ref<HTMLFormElement>;
};

export const Form = ({ submit, ...rest }: FormProps) => (
  <form
    {...rest}
    onSubmit={(event) => {
      event.preventDefault();
      void submit(new FormData(event.currentTarget));
    }}
  />
);

/** Without what was left empty. */
export const filledIn = (typed: FormData) =>
  Object.fromEntries([...typed].filter(([, value]) => value !== ''));

type OptionsProps = {
  readonly of: readonly (readonly [value: string | number, text: string])[];
  /** Where the select element itself has no value. */
  readonly chosen?: string | undefined;
};

export const Options = ({ of, chosen }: OptionsProps) => (
  <>
    {of.map(([value, text]) => (
      <option
        key={value}
        value={value}
        selected={chosen === undefined ? undefined : value === chosen}
      >
        {text}
      </option>
    ))}
  </>
);

type ButtonProps = Omit<ButtonHTMLAttributes, 'class'> & {
  readonly text: string;
  readonly look?: 'primary' | 'small' | 'danger' | undefined;
  readonly ref?: Ref<HTMLButtonElement>;
};

/** It submits its form only where `type` says so. */
export const Button = ({ text, look, ...rest }: ButtonProps) => (
  <button type="button" class={look === undefined ? 'button' : `button ${look}`} {...rest}>
    {text}
  </button>
);

type LineProps = HTMLAttributes<HTMLParagraphElement> & {
  readonly text: string;
  readonly ref?: Ref<HTMLParagraphElement>;
};

/** Why something was not done; hidden without a text. */
export const Problem = ({ text, ...rest }: LineProps) => (
  <p class="problem" role="alert" hidden={text === ''} {...rest}>
    {text}
  </p>
);

/** What was done; hidden without a text. */
export const Said = ({ text, ...rest }: LineProps) => (
  <p class="said-so" role="status" hidden={text === ''} {...rest}>
    {text}
  </p>
);

/** What is typed or chosen is the signal's value. */
export const bound = (signal: Signal<string>) => ({
  value: signal.value,
  onInput({ currentTarget }: { readonly currentTarget: { readonly value: string } }) {
    signal.value = currentTarget.value;
  },
});

export const set =
  <T,>(signal: Signal<T>, value: T) =>
  () => {
    signal.value = value;
  };
