import type { OverviewPartsFragment, VersionDetailQuery } from '../gql/graphql.ts';
import { number, Time } from './format.tsx';
import { Notice } from './marks.tsx';

const home = 'default';

/** Where a version is, unless it is in the database of the log. */
export function storeText(store: string): string | undefined {
  return store === home ? undefined : `in the read store ${store}`;
}

/** Says that a list is not complete. */
export function StoresAway({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  const isOne = names.length === 1;
  return (
    <Notice
      tone="bad"
      title={`The read ${isOne ? 'store' : 'stores'} ${names.join(', ')} ${isOne ? 'does' : 'do'} not respond.`}
    >
      {isOne
        ? 'What it has is missing here. Its versions catch up by themselves when it responds.'
        : 'What they have is missing here. Their versions catch up by themselves when they respond.'}
    </Notice>
  );
}

/** What a store had when it last responded. */
export function LastKnown({
  store: { name, lastKnown },
}: {
  readonly store: Pick<OverviewPartsFragment['stores'][number], 'name' | 'lastKnown'>;
}) {
  if (!lastKnown || lastKnown.versions.length === 0) return null;
  return (
    <p>
      {name} when it last responded, <Time at={lastKnown.at} />:{' '}
      {lastKnown.versions
        .map(({ id, state, position }) => `${id} ${state.toLowerCase()} at ${number(position)}`)
        .join(', ')}
      .
    </p>
  );
}

type Version = NonNullable<VersionDetailQuery['version']>;

/** Where a version moves, and what its moves have left. */
export function Copies({
  version: { id, copies, head },
}: {
  readonly version: Pick<Version, 'id' | 'copies' | 'head'>;
}) {
  return (
    <>
      {copies.map(({ store, position, isArriving, heldReason, error }) => (
        <Notice
          key={store}
          tone={error || heldReason ? 'warn' : 'info'}
          title={isArriving ? `Moves to the read store ${store}.` : `Has a copy in the store ${store}.`}
        >
          {isArriving ? (
            `It is at position ${number(position)} of ${number(head)} there. `
          ) : (
            <>
              A move has left it. <code>{`refold retire ${id} --store ${store}`}</code> ends its maintenance.{' '}
            </>
          )}
          {heldReason && `It does not take over: ${heldReason} `}
          {error && `It has stopped: ${error.message}`}
        </Notice>
      ))}
    </>
  );
}
