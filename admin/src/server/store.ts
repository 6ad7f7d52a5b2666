import { useEffect, useState } from 'preact/hooks';

/** A value that components follow. */
export interface Store<T> {
  get(): T;
  set(value: T): void;
  /** Returns a function that ends it. */
  follow(onChange: (value: T) => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let current = initial;
  const followers = new Set<(value: T) => void>();
  return {
    get: () => current,
    set(value) {
      current = value;
      for (const onChange of followers) onChange(value);
    },
    follow(onChange) {
      followers.add(onChange);
      return () => void followers.delete(onChange);
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get);
  useEffect(() => {
    setValue(store.get()); // it may have changed between the first rendering and now
    return store.follow(setValue);
  }, [store]);
  return value;
}
