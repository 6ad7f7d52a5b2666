import type { ComponentChildren } from 'preact';
import type { PagesState } from '../server/use-query.ts';
import { Scrollable } from './figures.tsx';
import { Problem } from './problem.tsx';
import { StoresAway } from './stores.tsx';

export interface TableColumn<T> {
  readonly title: string;
  readonly cell: (item: T) => ComponentChildren;
  /** Numbers are aligned at their ends. */
  readonly isNumber?: boolean;
  /** Left out if the window is narrow. */
  readonly isExtra?: boolean;
  /** The header of the row for screen readers. */
  readonly isName?: boolean;
  /** Long text, which may break. */
  readonly isText?: boolean;
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly TableColumn<T>[];
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** Shown if there are no items. */
  readonly empty: ComponentChildren;
  readonly rowClass?: (item: T) => string | undefined;
}

/** A table that scrolls by itself if it is too wide; the page never does. */
export function Table<T>({ caption, columns, items, keyOf, empty, rowClass }: TableProps<T>) {
  if (items.length === 0) return <p class="empty">{empty}</p>;
  return (
    <Scrollable class="scroll" label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} class={rowClass?.(item)}>
              {columns.map((column) =>
                column.isName ? (
                  <th key={column.title} scope="row" class={classOf(column)}>
                    {column.cell(item)}
                  </th>
                ) : (
                  <td key={column.title} class={classOf(column)}>
                    {column.cell(item)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function classOf<T>({ isNumber, isExtra, isText }: TableColumn<T>): string | undefined {
  const names = [isNumber && 'number', isExtra && 'extra', isText && 'text'].filter(Boolean);
  return names.length > 0 ? names.join(' ') : undefined;
}

interface PagedTableProps<R, T> extends Omit<TableProps<T>, 'items'> {
  readonly pages: PagesState<R, T>;
}

/** A list of the server with its pages. */
export function PagedTable<R, T>({ pages, empty, ...table }: PagedTableProps<R, T>) {
  if (pages.error) return <Problem error={pages.error} retry={pages.reload} />;
  if (!pages.data && pages.isLoading) return <Loading />;
  return (
    <div class={pages.isLoading ? 'stale' : undefined} aria-busy={pages.isLoading}>
      <StoresAway names={pages.storesAway} />
      <Table
        {...table}
        items={pages.items}
        empty={pages.hasNext ? 'Nothing here yet; there is more to search.' : empty}
      />
      <Pager {...pages} name={table.caption} />
    </div>
  );
}

interface PagerProps {
  readonly name: string;
  readonly page: number;
  readonly hasNext: boolean;
  forward(): void;
  back(): void;
}

export function Pager({ name, page, hasNext, forward, back }: PagerProps) {
  if (page === 1 && !hasNext) return null;
  return (
    <nav class="pager" aria-label={`Pages of ${name}`}>
      <button type="button" disabled={page === 1} onClick={back}>
        Previous
      </button>
      <span aria-live="polite">Page {page}</span>
      <button type="button" disabled={!hasNext} onClick={forward}>
        Next
      </button>
    </nav>
  );
}

export function Loading() {
  return (
    <p class="empty" role="status">
      Loading …
    </p>
  );
}
