import { useEffect, useMemo, useState } from 'preact/hooks';
import { readKey } from '../actions/version-actions.ts';
import { RowHistoryDocument } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { Filter } from '../parts/form.tsx';
import { keyText, number } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, Pager } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { useRights } from '../server/caller.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { usePages } from '../server/use-query.ts';
import { RowList } from './row-list.tsx';
import { StepDetail } from './step-detail.tsx';
import { StepList } from './step-list.tsx';

/** What happened to a row, event by event, in several versions at once. */
export function StepperPage({ params }: { readonly params: URLSearchParams }) {
  const { versions } = useStore(live);
  const mayRead = useRights().has('DATA');
  const declared = [...versions.values()].filter(({ isDeclared }) => isDeclared);
  const projections = [...new Set(declared.map(({ projection }) => projection))].sort();
  const projection = params.get('projection') || projections[0] || '';
  const key = params.get('key');
  const ofProjection = declared.filter((version) => version.projection === projection);
  return (
    <>
      <h1>Rows</h1>
      <p class="lead">
        Step through the events of a row and see it before and after each one, as every version folds them. Nothing is
        written.
      </p>
      {!mayRead ? (
        <Notice tone="quiet">Your token lacks the right DATA, so rows are not shown.</Notice>
      ) : (
        <>
          <Filter
            label="Choose a row"
            fields={[
              {
                name: 'projection',
                label: 'Read model',
                choices: projections.map((each) => [each, each] as const),
              },
              { name: 'key', label: 'Key, or keys as ["eu", 7]' },
            ]}
            values={new URLSearchParams({ projection, key: key ?? '' })}
            onApply={(values) => go(to(['rows'], { projection: values.projection, key: values.key }))}
          />
          {projection && key !== null ? (
            <History key={`${projection} ${key}`} projection={projection} rowKey={key} params={params} />
          ) : (
            projection && <RowList key={projection} versions={ofProjection} />
          )}
        </>
      )}
    </>
  );
}

interface HistoryProps {
  readonly projection: string;
  readonly rowKey: string;
  readonly params: URLSearchParams;
}

function History({ projection, rowKey, params }: HistoryProps) {
  const chosen = params.get('versions')?.split(',').map(Number);
  const key = useMemo(() => readKey(rowKey), [rowKey]);
  const pages = usePages(
    RowHistoryDocument,
    { projection, key, ...(chosen ? { versions: chosen } : {}) },
    ({ rowHistory }) => rowHistory,
  );
  const [index, setIndex] = useState(0);
  const at = params.get('at');
  const history = pages.data?.rowHistory;
  // Once, when the first page has arrived: to the event that the reader came from, or to the last one.
  useEffect(() => {
    if (!history) return;
    const found = history.items.findIndex(({ event }) => event.position === at);
    setIndex(found >= 0 ? found : Math.max(history.items.length - 1, 0));
  }, [history, at]);

  if (pages.error) return <Problem error={pages.error} retry={pages.reload} />;
  if (!history) return <Loading />;
  const step = pages.items[Math.min(index, pages.items.length - 1)];
  if (!step) return <p class="empty">No event of the log touches a row with this key.</p>;
  return (
    <Section
      title={`Row ${keyText(history.key)}`}
      aside={<VersionChoice history={history} projection={projection} params={params} />}
    >
      <div class="stepper">
        <div>
          <StepList steps={pages.items} index={index} onIndex={setIndex} />
          <Pager {...pages} name="events of the row" />
        </div>
        <div>
          <fieldset class="steps" aria-label="Steps">
            <button type="button" disabled={index === 0} onClick={() => setIndex(0)}>
              First
            </button>
            <button type="button" disabled={index === 0} onClick={() => setIndex(index - 1)}>
              Back
            </button>
            <span>
              Event {number(index + 1)} of {number(pages.items.length)}
              {(pages.hasNext || pages.page > 1) && ' on this page'}
            </span>
            <button type="button" disabled={index >= pages.items.length - 1} onClick={() => setIndex(index + 1)}>
              Forward
            </button>
            <button
              type="button"
              disabled={index >= pages.items.length - 1}
              onClick={() => setIndex(pages.items.length - 1)}
            >
              Last
            </button>
          </fieldset>
          <StepDetail step={step} columns={history.columns} />
        </div>
      </div>
    </Section>
  );
}

interface VersionChoiceProps {
  readonly history: { readonly versions: readonly string[] };
  readonly projection: string;
  readonly params: URLSearchParams;
}

function VersionChoice({ history, projection, params }: VersionChoiceProps) {
  const { versions } = useStore(live);
  const all = [...versions.values()]
    .filter((version) => version.projection === projection && version.isDeclared)
    .sort((a, b) => a.number - b.number);
  if (all.length < 2) return null;
  const choose = (id: string, isChosen: boolean) => {
    const next = all.filter((version) => (version.id === id ? isChosen : history.versions.includes(version.id)));
    go(to(['rows'], { ...Object.fromEntries(params), versions: next.map((version) => version.number).join(',') }));
  };
  return (
    <fieldset class="choices">
      <legend>Versions</legend>
      {all.map(({ id }) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={history.versions.includes(id)}
            disabled={history.versions.length === 1 && history.versions.includes(id)}
            onChange={({ currentTarget }) => choose(id, currentTarget.checked)}
          />
          {id}
        </label>
      ))}
    </fieldset>
  );
}
