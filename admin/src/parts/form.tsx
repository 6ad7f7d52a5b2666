import type { ComponentChildren, TargetedEvent } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly children: (id: string, hintId: string | undefined) => ComponentChildren;
}

/** A labelled input. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, hint ? `${id}-hint` : undefined)}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

export interface FilterField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** A choice of values instead of text: value and text. */
  readonly choices?: readonly (readonly [value: string, text: string])[];
  /** Suggested values. */
  readonly suggestions?: readonly string[];
  readonly type?: 'text' | 'datetime-local' | 'number';
  readonly placeholder?: string;
}

interface FilterProps {
  readonly label: string;
  readonly fields: readonly FilterField[];
  /** The values that are in effect. */
  readonly values: URLSearchParams;
  readonly onApply: (values: Readonly<Record<string, string>>) => void;
  readonly children?: ComponentChildren;
}

/** A search form. Its values take effect when it is sent, with Enter or the button. */
export function Filter({ label, fields, values, onApply, children }: FilterProps) {
  const inEffect = () => Object.fromEntries(fields.map(({ name }) => [name, values.get(name) ?? '']));
  const [draft, setDraft] = useState<Readonly<Record<string, string>>>(inEffect);
  // only when the address changes
  useEffect(() => setDraft(inEffect()), [values.toString()]);
  const isSet = fields.some(({ name }) => values.get(name));
  return (
    <search>
      <form
        class="filter"
        aria-label={label}
        onSubmit={(event) => {
          event.preventDefault();
          onApply(draft);
        }}
      >
        {fields.map((field) => (
          <Field key={field.name} label={field.label} {...(field.hint ? { hint: field.hint } : {})}>
            {(id, hintId) => (
              <Input
                id={id}
                hintId={hintId}
                field={field}
                value={draft[field.name] ?? ''}
                onValue={(value) => setDraft({ ...draft, [field.name]: value })}
              />
            )}
          </Field>
        ))}
        <div class="buttons">
          <button type="submit" class="primary">
            Apply
          </button>
          {isSet && (
            <button type="button" onClick={() => onApply({})}>
              Clear
            </button>
          )}
          {children}
        </div>
      </form>
    </search>
  );
}

interface InputProps {
  readonly id: string;
  readonly hintId: string | undefined;
  readonly field: FilterField;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function Input({ id, hintId, field, value, onValue }: InputProps) {
  const { name, choices, suggestions, type = 'text', placeholder } = field;
  const onInput = ({ currentTarget }: TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
    onValue(currentTarget.value);
  if (choices)
    return (
      <select id={id} name={name} value={value} onChange={onInput} aria-describedby={hintId}>
        {choices.map(([choice, text]) => (
          <option key={choice} value={choice}>
            {text}
          </option>
        ))}
      </select>
    );
  return (
    <>
      <input
        {...{ id, name, type, value, placeholder, onInput }}
        aria-describedby={hintId}
        list={suggestions && `${id}-list`}
        autocomplete="off"
        spellcheck={false}
        step={type === 'datetime-local' ? 1 : undefined}
      />
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((suggestion) => (
            <option key={suggestion} value={suggestion} />
          ))}
        </datalist>
      )}
    </>
  );
}
