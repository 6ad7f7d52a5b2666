import type { ComponentChildren } from 'preact';

export interface Figure {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
}

/** Names with values, such as the state of a version. */
export function Figures({ items }: { readonly items: readonly (Figure | false | undefined | null)[] }) {
  return (
    <dl class="figures">
      {items.map(
        (item) =>
          item && (
            <div key={item.name}>
              <dt>{item.name}</dt>
              <dd>
                {item.value}
                {item.note && <small>{item.note}</small>}
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

interface SectionProps {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, aside, children }: SectionProps) {
  return (
    <section class="section">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

interface ScrollableProps {
  readonly label: string;
  readonly class: string;
  readonly children: ComponentChildren;
}

/** What may be wider or higher than its place, and scrolls by itself. */
export function Scrollable({ label, class: name, children }: ScrollableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class={name} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

interface JsonProps {
  readonly label: string;
  readonly value: unknown;
}

export function Json({ label, value }: JsonProps) {
  return (
    <Scrollable class="json" label={label}>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </Scrollable>
  );
}
